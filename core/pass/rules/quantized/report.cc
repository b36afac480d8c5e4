// SPDX-License-Identifier: Apache-2.0
#include "core/pass/rules/quantized/report.h"

#include <algorithm>
#include <array>

#include "core/pass/engine/run_rules.h"
#include "core/pass/rules/mark_epilogues.h"
#include "core/pass/rules/quantized/quantized.h"

namespace pfrt {
namespace {

constexpr std::array<std::string_view, 4> kIntegerProducts{"ConvInteger", "MatMulInteger",
                                                           "QLinearConv", "QLinearMatMul"};
constexpr std::array<std::string_view, 2> kAveragesOfBytes{"QLinearAveragePool",
                                                           "QLinearGlobalAveragePool"};
constexpr std::array<std::string_view, 2> kAverages{"AveragePool", "GlobalAveragePool"};
constexpr std::array<std::string_view, 3> kProducts{"Conv", "Gemm", "MatMul"};
constexpr std::array<std::string_view, 1> kTransposed{"ConvTranspose"};
constexpr std::array<std::string_view, 2> kQuantizing{"DequantizeLinear", "QuantizeLinear"};

bool is_any(const Node& node, std::span<const std::string_view> ops) {
  return node.domain.empty() && std::ranges::find(ops, node.op) != ops.end();
}

// Operators whose result is made of sums of integers.
bool sums_integers(const Node& node) {
  return is_any(node, kIntegerProducts) ||
         (node.domain == "com.microsoft" &&
          std::ranges::find(kAveragesOfBytes, node.op) != kAveragesOfBytes.end());
}

class Reporter {
 public:
  Reporter(Editor& editor, std::vector<QuantizedGroup>& groups)
      : editor_(editor), groups_(groups) {}

  Status run() {
    PFRT_ASSIGN(const std::vector<NodeId> order, editor_.topological_order());
    for (const NodeId id : order) look(*editor_.node(id));
    return {};
  }

 private:
  void look(Node& node) {
    if (is_any(node, kQuantizing)) return;
    if (sums_integers(node)) return add(node, "");
    if (moves_steps(node)) return add(node, "");
    if (std::ranges::none_of(node.inputs, [&](ValueId v) { return is_dequantized(v); })) return;
    if (is_any(node, kProducts)) return add(node, why_not_in_integers(editor_, node));
    if (is_any(node, kTransposed)) return add(node, why_not_transposed(editor_, node));
    if (is_any(node, kAverages)) return add(node, why_no_average_of_bytes(node));
    if (!is_elementwise(node)) return add(node, message("there is no ", node.op, " of integers"));
    add(node, why_no_loop_of_bytes(node));
  }

  void add(const Node& node, std::string in_float) {
    std::string name = node.name;
    if (name.empty() && node.has_output(0)) name = editor_.graph().at(node.outputs[0]).name;
    groups_.push_back({node.op, std::move(name), std::move(in_float)});
  }

  std::string why_no_average_of_bytes(const Node& node) {
    const auto from = dequantized(editor_, node.inputs[0]);
    if (!from || !from->single || dtype_bits(from->dtype) != 8)
      return "it needs bytes with one scale, of float32";
    if (!scales_of(editor_, *from))
      return "a scale is not constant, or not a normal number above 0";
    const Node* const next = editor_.only_user(node.outputs[0]);
    if (!next || next->op != "QuantizeLinear") return "the result is not quantized next";
    const auto to = quantization(editor_, *next);
    if (!to || !to->single || dtype_bits(to->dtype) != 8 || !scales_of(editor_, *to))
      return "the result is not quantized to bytes by one constant scale";
    return "the provider takes no such average";
  }

  bool is_dequantized(ValueId value) {
    return value != kNoId && editor_.maker(value, "DequantizeLinear") != nullptr;
  }

  // Whether it moves steps unchanged, and its result is read as numbers.
  bool moves_steps(const Node& node) {
    if (node.inputs.empty() || node.inputs[0] == kNoId || !node.has_output(0)) return false;
    const Node* const from = editor_.producer(node.inputs[0]);
    const bool made = from && (from->op == "QuantizeLinear" || sums_integers(*from));
    const bool read = std::ranges::any_of(editor_.users(node.outputs[0]), [&](NodeId id) {
      const Node& user = *editor_.node(id);
      return user.op == "DequantizeLinear" || sums_integers(user);
    });
    const pfrt_dtype type = editor_.type(node.outputs[0]).dtype;
    return (made || read) && editor_.type(node.inputs[0]).dtype == type && dtype_is_integer(type) &&
           dtype_bits(type) <= 16;
  }

  // Empty where |node| reads steps or constants only and its result becomes steps; else the reason.
  std::string why_no_loop_of_bytes(const Node& node) {
    for (const ValueId v : node.inputs) {
      if (v == kNoId || is_dequantized(v) || editor_.constant(v)) continue;
      const Node* const from = editor_.producer(v);
      if (!from || !is_elementwise(*from))
        return message("'", editor_.graph().at(v).name, "' is not quantized");
    }
    return why_not_quantized(node.outputs[0]);
  }

  std::string why_not_quantized(ValueId result) {
    constexpr size_t kMost = 64;  // of elementwise nodes that one loop takes
    std::vector<ValueId> values{result};
    for (size_t i = 0; i < values.size(); ++i) {
      const ValueId value = values[i];
      if (editor_.is_output(value))
        return message("the result '", editor_.graph().at(value).name,
                       "' is an output of the graph");
      for (const NodeId id : editor_.users(value)) {
        const Node& user = *editor_.node(id);
        if (user.op == "QuantizeLinear" && user.domain.empty()) continue;
        if (!is_elementwise(user) || user.outputs.size() != 1)
          return message("the result goes to ", user.op, " before it is quantized");
        if (std::ranges::find(values, user.outputs[0]) != values.end()) continue;
        if (values.size() == kMost) return "what follows is too long for one loop";
        values.push_back(user.outputs[0]);
      }
    }
    return {};
  }

  Editor& editor_;
  std::vector<QuantizedGroup>& groups_;
};

// Most graphs have no groups, and need not be copied.
bool may_have_groups(const Graph& graph) {
  for (NodeId id = 0; id < graph.node_capacity(); ++id)
    if (const Node* const node = graph.node(id))
      if (has_bodies(*node) || is_any(*node, kQuantizing) || sums_integers(*node)) return true;
  return false;
}

}  // namespace

Result<std::vector<QuantizedGroup>> quantized_groups(const Graph& graph) {
  std::vector<QuantizedGroup> groups;
  if (!may_have_groups(graph)) return groups;
  const std::shared_ptr<Graph> copy = graph.clone();
  PFRT_TRY(for_each_graph(*copy, PassContext{},
                          [&](Editor& editor) { return Reporter(editor, groups).run(); }));
  return groups;
}

std::vector<std::string> quantized_lines(const std::vector<QuantizedGroup>& groups) {
  if (groups.empty()) return {};
  const auto in_float = std::ranges::count_if(
      groups, [](const QuantizedGroup& group) { return !group.in_float.empty(); });
  std::vector<std::string> lines{
      message("quantized groups: ", static_cast<int64_t>(groups.size()) - in_float,
              " in integers, ", in_float, " in float")};
  for (const QuantizedGroup& group : groups)
    if (!group.in_float.empty())
      lines.push_back(message("in float: ", group.op, " '", group.name, "': ", group.in_float));
  return lines;
}

}  // namespace pfrt
