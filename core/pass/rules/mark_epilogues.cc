// SPDX-License-Identifier: Apache-2.0
#include "core/pass/rules/mark_epilogues.h"

#include <algorithm>
#include <array>

namespace pfrt {
namespace {

constexpr std::array<std::string_view, 36> kElementwise{
    "Abs",         "Add",       "Ceil",      "Celu",    "Clip",  "Cos",
    "Div",         "Elu",       "Erf",       "Exp",     "Floor", "Gelu",
    "HardSigmoid", "HardSwish", "LeakyRelu", "Log",     "Max",   "Min",
    "Mish",        "Mul",       "Neg",       "Pow",     "PRelu", "Reciprocal",
    "Relu",        "Round",     "Selu",      "Sigmoid", "Sin",   "Softplus",
    "Softsign",    "Sqrt",      "Sub",       "Swish",   "Tanh",  "ThresholdedRelu"};
constexpr size_t kLongestEpilogue = 16;

constexpr std::array<std::string_view, 3> kConverting{"Cast", "DequantizeLinear", "QuantizeLinear"};

// Whether the node converts elements to another type.
bool converts(const Node& node) {
  return node.domain.empty() && std::ranges::find(kConverting, node.op) != kConverting.end();
}

// Names of epilogues, by head and first node.
std::string name_of(const Node& head, const Node& next) {
  if (next.op == "Relu") {
    if (head.op == "Add") return "FusedAddRelu";
    if (head.op == "Mul") return "FusedMulRelu";
    if (head.op == "Conv") return "FusedConvRelu";
    if (head.op == "BatchNormalization") return "FusedBNRelu";
  }
  if (head.op == "Mul" && next.op == "Add") return "FMA";
  if (next.op == "MaxPool") return "FusedConvMaxPool";
  if (next.op.ends_with("Normalization")) return "FusedNormalization";
  return "Epilogue";
}

class Marker {
 public:
  Marker(Editor& editor, const FusionConfig& config, bool again, PassContext& context,
         PassResult& result)
      : editor_(editor), config_(config), again_(again), context_(context), result_(result) {}

  Status run() {
    Graph& graph = editor_.graph();
    PFRT_ASSIGN(const std::vector<NodeId> order, editor_.topological_order());
    std::vector<NodeId> epilogue_of(graph.node_capacity(), kNoId);
    for (NodeId id : order)
      if (epilogue_of[id] == kNoId) follow(*graph.node(id), epilogue_of);
    for (NodeId id : order) graph.node(id)->epilogue_of = epilogue_of[id];
    return {};
  }

 private:
  void follow(Node& head, std::vector<NodeId>& epilogue_of) {
    if (head.outputs.empty() || has_bodies(head) || !may_lead(head)) return;
    for (size_t i = 1; i < head.outputs.size(); ++i)
      if (head.has_output(i)) return;
    std::vector<const Node*> epilogue;
    ValueId value = head.outputs[0];
    const bool simple = is_elementwise(head) || converts(head);
    while (value != kNoId && epilogue.size() < kLongestEpilogue) {
      Node* next = editor_.only_user(value);
      if (!next || epilogue_of[next->id] != kNoId || next->outputs.size() != 1) break;
      const bool pools = epilogue.empty() && head.op == "Conv" && next->op == "MaxPool";
      if (!pools && !follows(value, *next)) break;
      // Elementwise heads form pairs only: longer chains are left to the provider.
      if (simple && name_of(head, *next) == "Epilogue") break;
      if (simple && !config_.fuse_elementwise_activation) break;
      if (simple && !epilogue.empty()) break;
      if (!agreed(head, epilogue, *next)) break;
      epilogue.push_back(next);
      value = next->outputs[0];
    }
    Node* const norm = simple ? nullptr : normalisation_of(value, epilogue_of);
    // A node that begins a loop of several branches is better left in that loop.
    if (!simple && !norm && !epilogue.empty() && branches(*epilogue.back())) epilogue.pop_back();
    if (norm && agreed(head, epilogue, *norm)) epilogue.push_back(norm);
    for (size_t i = 0; i < epilogue.size(); ++i) {
      const bool named = i == 0 || epilogue[i] == norm;
      const std::string rule = named ? name_of(head, *epilogue[i]) : "Epilogue";
      const std::string& name = editor_.graph().at(epilogue[i]->outputs[0]).name;
      if (!context_.gate.may(rule, editor_.graph(), name)) break;
      if (epilogue[i]->epilogue_of != head.id) {
        result_.modified = true;
        ++result_.stats.nodes_fused;
        ++result_.stats.rules[rule];
      }
      context_.gate.did(rule, editor_.graph(), name);
      epilogue_of[epilogue[i]->id] = head.id;
    }
  }

  // Whether |next| computes an element from each element of |value|.
  bool follows(ValueId value, const Node& next) const {
    if (is_elementwise(next)) return editor_.same_type(value, next.outputs[0]);
    const Type &from = editor_.type(value), &to = editor_.type(next.outputs[0]);
    return converts(next) && next.inputs[0] == value && from.has_shape && to.has_shape &&
           from.shape == to.shape;
  }

  // The normalisation of the value's last dimension; the value may have other users.
  Node* normalisation_of(ValueId value, const std::vector<NodeId>& epilogue_of) {
    for (NodeId id : editor_.users(value)) {
      Node& user = *editor_.node(id);
      const bool normalises = user.op == "LayerNormalization" || user.op == "RMSNormalization";
      if (normalises && user.domain.empty() && user.inputs[0] == value &&
          user.outputs.size() == 1 && epilogue_of[id] == kNoId)
        return &user;
    }
    return nullptr;
  }

  bool agreed(const Node& head, std::vector<const Node*> epilogue, const Node& next) const {
    if (!config_.check_backend_support || !context_.refuses) return true;
    if (again_ && next.epilogue_of == head.id) return true;
    epilogue.push_back(&next);
    return context_.refuses(editor_.graph(), head, epilogue, config_.target_backend).empty();
  }

  bool branches(const Node& last) {
    const ValueId value = last.outputs[0];
    size_t count = 0;
    for (NodeId id : editor_.users(value)) {
      const Node& user = *editor_.node(id);
      count += is_elementwise(user) && editor_.same_type(value, user.outputs[0]);
    }
    return count > 1;
  }

  static bool may_lead(const Node& head) {
    return head.domain.empty() || head.domain == "com.microsoft";
  }

  Editor& editor_;
  const FusionConfig& config_;
  const bool again_;
  PassContext& context_;
  PassResult& result_;
};

}  // namespace

bool is_elementwise(const Node& node) {
  return node.domain.empty() && std::ranges::find(kElementwise, node.op) != kElementwise.end();
}

Status mark_epilogues(Editor& editor, const FusionConfig& config, bool again, PassContext& context,
                      PassResult& result) {
  return Marker(editor, config, again, context, result).run();
}

}  // namespace pfrt
