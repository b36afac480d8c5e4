// SPDX-License-Identifier: Apache-2.0
#include "core/pass/rules/layout/channels_last.h"

#include <algorithm>
#include <map>

#include "core/pass/rules/moves.h"

namespace pfrt {
namespace {

std::string_view channels_last_form(const Node& node) {
  if (!node.domain.empty() || node.outputs.empty() || node.outputs[0] == kNoId) return {};
  if (node.op == "Conv") return "NhwcConv";
  return node.op == "MaxPool" && node.outputs.size() == 1 ? "NhwcMaxPool" : "";
}

class ChannelsLast {
 public:
  ChannelsLast(Editor& editor, const LayoutConfig& config, PassContext& context, PassResult& result)
      : editor_(editor), config_(config), context_(context), result_(result) {}

  Status run() {
    for (NodeId id : editor_.graph().node_ids())
      if (editor_.node(id) && !channels_last_form(*editor_.node(id)).empty()) PFRT_TRY(put(id));
    for (const auto& [reason, names] : left_)
      result_.warnings.push_back(message("conv_layout NHWC: ", names.size(),
                                         " of the nodes, first '", names.front(),
                                         "', stay NCHW: ", reason));
    return {};
  }

 private:
  Status put(NodeId id) {
    const Node before = *editor_.node(id);
    const ValueId in = before.inputs[0], out = before.outputs[0];
    const std::string at = editor_.graph().at(out).name;
    const std::optional<size_t> rank = editor_.rank(in);
    if (!rank || *rank < 3) return leave(before, "the rank of the input is not known");
    std::vector<int64_t> last{0};
    for (size_t i = 2; i < *rank; ++i) last.push_back(static_cast<int64_t>(i));
    last.push_back(1);
    if (!config_.insert_transposes && !between_transposes(before, last))
      return leave(before, "insert_transposes is off and it does not stand between transposes");
    if (!context_.gate.may("ChannelsLast", editor_.graph(), at)) return {};

    PFRT_ASSIGN(const ValueId moved,
                editor_.add("Transpose", before.name, {in}, {Attribute::of_ints("perm", last)}));
    Node node = before;
    node.op = channels_last_form(before);
    node.domain = "com.microsoft";
    node.epilogue_of = kNoId;
    node.inputs[0] = moved;
    auto made = editor_.add_node(std::move(node), before.name);
    if (!made.ok()) {
      editor_.remove_unused(editor_.graph().at(moved).producer);
      return made.take_status();
    }
    const NodeId form = editor_.graph().at(made->front()).producer;
    std::string reason = "nobody is there to ask whether it has the form";
    if (context_.refuses)
      reason = context_.refuses(editor_.graph(), *editor_.node(form), {}, config_.target_backend);
    if (!reason.empty()) {
      editor_.remove_unused(form);
      return leave(before, std::move(reason));
    }
    PFRT_ASSIGN(const ValueId back, editor_.add("Transpose", before.name, {made->front()},
                                                {Attribute::of_ints("perm", inverse(last))}));
    editor_.replace(out, back);
    context_.gate.did("ChannelsLast", editor_.graph(), at);
    ++result_.stats.rules["ChannelsLast"];
    result_.modified = true;
    return {};
  }

  bool between_transposes(const Node& node, const std::vector<int64_t>& last) {
    const auto is = [](const Node* other, const std::vector<int64_t>& perm) {
      const std::vector<int64_t>* found = other ? permutation(*other) : nullptr;
      return found && *found == perm;
    };
    const ValueId out = node.outputs[0];
    return is(editor_.producer(node.inputs[0]), inverse(last)) && !editor_.is_output(out) &&
           std::ranges::all_of(editor_.users(out),
                               [&](NodeId id) { return is(editor_.node(id), last); });
  }

  Status leave(const Node& node, std::string reason) {
    left_[std::move(reason)].push_back(node.name.empty() ? editor_.graph().at(node.outputs[0]).name
                                                         : node.name);
    return {};
  }

  Editor& editor_;
  const LayoutConfig& config_;
  PassContext& context_;
  PassResult& result_;
  std::map<std::string, std::vector<std::string>> left_;  // names, by reason
};

}  // namespace

Status put_channels_last(Editor& editor, const LayoutConfig& config, PassContext& context,
                         PassResult& result) {
  return ChannelsLast(editor, config, context, result).run();
}

}  // namespace pfrt
