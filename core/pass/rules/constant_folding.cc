// SPDX-License-Identifier: Apache-2.0
//
// Computes once what follows from constants alone, by the provider that would run it; shapes and
// arithmetic on them are read off inference. Bodies know the constants that they capture.
#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "core/base/half.h"
#include "core/op/defs/common/helpers.h"
#include "core/op/engine/inference.h"
#include "core/op/engine/lookup.h"
#include "core/op/engine/operator_def.h"
#include "core/op/engine/operator_set.h"
#include "core/pass/engine/passes.h"
#include "core/pass/rules/moves.h"
#include "core/pass/rules/rule_tables.h"

namespace pfrt {
namespace {

constexpr std::string_view kName = "ConstantFoldingPass";

// Products, and operators that run long for their size.
constexpr std::array<std::string_view, 19> kExpensive{
    "Conv",   "ConvTranspose", "ConvInteger",   "QLinearConv",        "DeformConv",
    "MatMul", "Gemm",          "QLinearMatMul", "MatMulInteger",      "Einsum",
    "LSTM",   "GRU",           "RNN",           "Attention",          "DFT",
    "STFT",   "GridSample",    "Det",           "CausalConvWithState"};
// Folding these would replace the small form of a constant by the large one.
constexpr std::array<std::string_view, 3> kUnpacking{"DequantizeLinear", "BlockQuantizedLinear",
                                                     "DequantizeBFP"};

// A model's budget, and its increase for each byte of constants.
constexpr uint64_t kBudgetBytes = uint64_t{64} << 20;
constexpr double kBudgetWork = 2e9, kWorkPerByte = 32;
// After this many failures, others are not tried one by one.
constexpr size_t kMostFailures = 64;

class Folder {
 public:
  Folder(const ConstantFoldingConfig& config, PassContext& context, PassResult& result)
      : config_(config), context_(context), result_(result) {}

  Status run(Editor& editor) {
    if (config_.fold_shape_ops) PFRT_TRY(fold_shapes(editor));
    PFRT_TRY(fold_nodes(editor));
    hand_in(editor);
    return {};
  }

  void finish() {
    if (failed_ > kMostFailures)
      result_.warnings.push_back(
          "more constants cannot be computed beforehand; they are not tried");
    if (skipped_ && !std::exchange(context_.folding.told, true))
      result_.warnings.push_back(
          "constants beyond what a model of this size may have computed beforehand are computed in "
          "each run");
  }

 private:
  void replaced(Editor& editor, ValueId value, ValuePtr constant, std::string_view rule) {
    const std::string name = editor.graph().at(value).name;
    editor.replace_with_constant(value, std::move(constant));
    context_.gate.did(rule, editor.graph(), name);
    result_.modified = true;
    ++result_.stats.constants_folded;
    ++result_.stats.rules[std::string(rule)];
  }

  // Folds values whose contents inference knows.
  Status fold_shapes(Editor& editor) {
    const Graph& graph = editor.graph();
    PFRT_ASSIGN(const std::vector<NodeId> order, editor.topological_order());
    for (NodeId id : order) {
      PFRT_TRY(context_.look());
      const Node* node = graph.node(id);
      if (!node || contains(config_.exclude_ops, node->op)) continue;
      for (ValueId out : std::vector<ValueId>(node->outputs)) {
        if (out == kNoId || (editor.users(out).empty() && !editor.is_output(out))) continue;
        const Type& type = editor.type(out);
        const std::optional<std::vector<int64_t>> numbers = editor.numbers(out);
        if (!numbers || !type.is_tensor() || !type.fixed()) continue;
        if (!context_.gate.may("FoldShape", graph, graph.at(out).name)) continue;
        PFRT_ASSIGN(std::optional<Tensor> tensor, tensor_of(type, *numbers));
        if (!tensor) continue;
        replaced(editor, out, Value::of(std::move(*tensor)), "FoldShape");
        if (!graph.node(id)) break;
      }
    }
    return {};
  }

  static Result<std::optional<Tensor>> tensor_of(const Type& type,
                                                 const std::vector<int64_t>& numbers) {
    Dims dims;
    for (const Dim& d : type.shape) dims.push_back(d.value());
    if (element_count(dims.data(), dims.size()) != static_cast<int64_t>(numbers.size()))
      return std::optional<Tensor>();
    if (type.dtype != PFRT_DTYPE_INT64 && type.dtype != PFRT_DTYPE_INT32 &&
        type.dtype != PFRT_DTYPE_BOOL)
      return std::optional<Tensor>();
    PFRT_ASSIGN(Tensor tensor, Tensor::allocate(type.dtype, std::move(dims)));
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (type.dtype == PFRT_DTYPE_INT64) tensor.as<int64_t>()[i] = numbers[i];
      if (type.dtype == PFRT_DTYPE_INT32)
        tensor.as<int32_t>()[i] = static_cast<int32_t>(numbers[i]);
      if (type.dtype == PFRT_DTYPE_BOOL) tensor.as<bool>()[i] = numbers[i] != 0;
    }
    return std::optional(std::move(tensor));
  }

  bool foldable(const Editor& editor, const Node& node, const std::vector<bool>& known) const {
    const Graph& graph = editor.graph();
    if (node.inputs.empty() && node.op != "Range" && node.op != "Constant") return false;
    if (has_bodies(node) || contains(config_.exclude_ops, node.op)) return false;
    if (contains(kUnpacking, node.op) && !keeps_size(editor, node)) return false;
    if (!config_.fold_expensive_ops && contains(kExpensive, node.op)) return false;
    const OperatorDef* row = find_canonical(graph, node);
    if (!row || (row->flags & (kOpRandom | kOpRefused)) || !is_built_in(node.domain, node.op))
      return false;
    for (ValueId in : node.inputs)
      if (in != kNoId && !known[in]) return false;
    const uint64_t most = becomes_weights(editor, node) ? UINT64_MAX : config_.max_tensor_bytes;
    for (ValueId out : node.outputs)
      if (out != kNoId && !sized_within(editor.type(out), most)) return false;
    return true;
  }

  // Whether products alone read what a Transpose makes, as of an embedding that is also the last
  // layer. A provider packs their weights, however large, and a run would move all of them.
  static bool becomes_weights(const Editor& editor, const Node& node) {
    if (node.op != "Transpose" || editor.is_output(node.outputs[0])) return false;
    const auto users = editor.users(node.outputs[0]);
    return !users.empty() && std::ranges::all_of(users, [&](NodeId id) {
      const Node& user = *editor.graph().node(id);
      return (user.op == "MatMul" || user.op == "Gemm") && user.domain.empty() &&
             user.inputs[1] == node.outputs[0] && user.inputs[0] != node.outputs[0];
    });
  }

  // Whether the result is no larger than the input, as a bias of int32 that becomes float32.
  static bool keeps_size(const Editor& editor, const Node& node) {
    return node.op == "DequantizeLinear" && node.outputs[0] != kNoId &&
           dtype_bits(editor.type(node.inputs[0]).dtype) >=
               dtype_bits(editor.type(node.outputs[0]).dtype);
  }

  // Whether a tensor's size is known and at most |most| bytes. The size of texts is not known: a
  // chain of concatenations doubles them with each node.
  static bool sized_within(const Type& type, uint64_t most) {
    if (!type.is_tensor() || !type.fixed() || !dtype_known(type.dtype)) return false;
    if (type.dtype == PFRT_DTYPE_STRING) return false;
    Dims dims;
    for (const Dim& d : type.shape) dims.push_back(d.value());
    return tensor_bytes(type.dtype, element_count(dims.data(), dims.size())) <= most;
  }

  // Sets the bytes and work that folding may take for a model of this size; the rest is left to its
  // runs.
  void set_budget(const Graph& graph) {
    if (context_.folding.set) return;
    uint64_t stored = 0;
    for (ValueId id : graph.initializers())
      if (const Tensor* tensor = graph.constant(id)) stored += tensor->bytes();
    const uint64_t allowed = stored / 4 > kBudgetBytes ? 4 * stored : kBudgetBytes + 4 * stored;
    context_.folding = {true, false, allowed,
                        kBudgetWork + kWorkPerByte * static_cast<double>(stored)};
  }

  struct Cost {
    uint64_t bytes = 0;
    double work = 0;
  };
  // The cost of a node that is foldable().
  static Cost cost_of(const Editor& editor, const Node& node) {
    const auto bytes_of = [&](ValueId id) -> uint64_t {
      const Type& type = editor.type(id);
      if (id == kNoId || !type.fixed() || !dtype_known(type.dtype)) return 0;
      Dims dims;
      for (const Dim& d : type.shape) dims.push_back(d.value());
      return tensor_bytes(type.dtype, element_count(dims.data(), dims.size()));
    };
    Cost cost;
    for (ValueId out : node.outputs) cost.bytes += bytes_of(out);
    uint64_t read = 0;
    for (ValueId in : node.inputs) read += bytes_of(in);
    cost.work = static_cast<double>(cost.bytes) + static_cast<double>(read);
    const OperatorDef* row = find_canonical(editor.graph(), node);
    // The cost function of a row only reads the state.
    if (row && row->flops)
      cost.work +=
          row->flops(Inference(editor.graph(), node, const_cast<InferState&>(editor.state())));
    return cost;
  }

  Status fold_nodes(Editor& editor) {
    if (!context_.evaluate) return {};
    const Graph& graph = editor.graph();
    set_budget(graph);
    FoldingBudget& left = context_.folding;
    PFRT_ASSIGN(const std::vector<NodeId> order, editor.topological_order());
    std::vector<bool> known(graph.value_count());
    for (ValueId id = 0; id < known.size(); ++id) known[id] = graph.at(id).constant != nullptr;
    std::vector<NodeId> nodes;
    std::vector<bool> folds(graph.node_capacity());
    uint64_t bytes = 0;
    for (NodeId id : order) {
      PFRT_TRY(context_.look());
      const Node& node = *graph.node(id);
      if (!foldable(editor, node, known)) continue;
      const Cost cost = cost_of(editor, node);
      if (cost.bytes > left.bytes - bytes || !(cost.work <= left.work)) {
        skipped_ = true;
        continue;
      }
      bytes += cost.bytes;
      left.work -= cost.work;
      nodes.push_back(id);
      folds[id] = true;
      for (ValueId out : node.outputs)
        if (out != kNoId) known[out] = true;
    }
    std::vector<ValueId> wanted;
    for (NodeId id : nodes) {
      for (ValueId out : graph.node(id)->outputs) {
        if (out == kNoId) continue;
        const bool used =
            editor.is_output(out) ||
            std::ranges::any_of(editor.users(out), [&](NodeId u) { return !folds[u]; });
        if (used && context_.gate.may("FoldConstant", graph, graph.at(out).name))
          wanted.push_back(out);
      }
    }
    if (wanted.empty()) return {};
    std::vector<ValuePtr> values(wanted.size());
    PFRT_TRY(compute(graph, folds, wanted, values));
    for (size_t i = 0; i < wanted.size(); ++i) {
      // The limit of applications may be reached in the middle.
      if (!values[i] || !context_.gate.may("FoldConstant", graph, graph.at(wanted[i]).name))
        continue;
      left.bytes -= std::min(left.bytes, values[i]->tensor.bytes());
      replaced(editor, wanted[i], std::move(values[i]), "FoldConstant");
    }
    return {};
  }

  // Computes all at once or, when that fails, each half separately, without those that fail alone.
  Status compute(const Graph& graph, const std::vector<bool>& folds,
                 std::span<const ValueId> wanted, std::span<ValuePtr> values) {
    auto all = evaluate(graph, folds, wanted);
    if (all.ok()) {
      std::ranges::move(*all, values.begin());
      return {};
    }
    const Code code = all.status().code();
    if (code == Code::kDEADLINE && !(context_.progress && context_.progress->stopped())) {
      skipped_ = true;  // it takes longer than its estimated cost
      context_.folding.work = 0;
      return {};
    }
    if (code == Code::kCANCELLED || code == Code::kDEADLINE || code == Code::kOUT_OF_MEMORY)
      return all.take_status();
    if (wanted.size() == 1) {
      if (++failed_ <= kMostFailures)
        result_.warnings.push_back(
            message("'", graph.at(wanted[0]).name,
                    "' is constant but cannot be computed beforehand: ", all.status().message()));
      return {};
    }
    if (failed_ > kMostFailures) return {};
    const size_t half = wanted.size() / 2;
    PFRT_TRY(compute(graph, folds, wanted.first(half), values.first(half)));
    return compute(graph, folds, wanted.subspan(half), values.subspan(half));
  }

  // The nodes that make |wanted|, and those that these need, in topological order.
  static std::vector<NodeId> needed_for(const Graph& graph, const std::vector<bool>& folds,
                                        std::span<const ValueId> wanted) {
    std::vector<NodeId> taken;
    std::unordered_map<NodeId, bool> done;  // false: its inputs' makers come first
    std::vector<NodeId> todo;
    const auto push = [&](ValueId value) {
      const NodeId maker = value == kNoId ? kNoId : graph.at(value).producer;
      if (maker != kNoId && folds[maker] && !done.contains(maker)) todo.push_back(maker);
    };
    for (ValueId value : wanted) {
      push(value);
      while (!todo.empty()) {
        const NodeId id = todo.back();
        const auto [at, first] = done.try_emplace(id, false);
        if (first) {
          for (ValueId in : graph.node(id)->inputs) push(in);
          continue;
        }
        todo.pop_back();
        if (!std::exchange(at->second, true)) taken.push_back(id);
      }
    }
    return taken;
  }

  Result<std::vector<ValuePtr>> evaluate(const Graph& graph, const std::vector<bool>& folds,
                                         std::span<const ValueId> wanted) const {
    auto part = std::make_shared<Graph>("constants");
    part->opsets = graph.opsets;
    part->symbols = graph.symbols;
    part->operators = graph.operators;
    const auto mirror = [&](ValueId value) {
      if (value == kNoId) return kNoId;
      const ValueId id = part->value(graph.at(value).name);
      part->at(id).type = graph.at(value).type;
      if (graph.at(value).constant) part->at(id).constant = graph.at(value).constant;
      return id;
    };
    for (NodeId id : needed_for(graph, folds, wanted)) {
      Node copy = *graph.node(id);
      for (ValueId& v : copy.inputs) v = mirror(v);
      for (ValueId& v : copy.outputs) v = mirror(v);
      copy.epilogue_of = kNoId;
      PFRT_TRY(part->add_node(std::move(copy)).take_status());
    }
    for (ValueId value : wanted) part->outputs.push_back(mirror(value));
    return context_.evaluate(std::move(part));
  }

  // Gives bodies copies of the constants that they capture, which share the bytes.
  void hand_in(Editor& editor) {
    Graph& graph = editor.graph();
    for (NodeId id : graph.node_ids()) {
      Node& node = *graph.node(id);
      if (!has_bodies(node)) continue;
      const std::vector<ValueId> before = graph.used_by(node);
      bool changed = false;
      (void)for_each_body(node, [&](Graph& body) -> Status {
        std::erase_if(body.captures, [&](const Capture& c) {
          if (!graph.at(c.outer).constant) return false;
          const std::string& name = graph.at(c.outer).name;
          if (!context_.gate.may("ConstantIntoBody", graph, name)) return false;
          body.set_constant(c.inner, graph.at(c.outer).constant);
          context_.gate.did("ConstantIntoBody", graph, name);
          ++result_.stats.rules["ConstantIntoBody"];
          return changed = true;
        });
        return {};
      });
      if (!changed) continue;
      result_.modified = true;
      editor.forget_uses(node, before);
    }
  }

  const ConstantFoldingConfig& config_;
  PassContext& context_;
  PassResult& result_;
  size_t failed_ = 0;
  bool skipped_ = false;
};

class ConstantFoldingPass final : public Pass {
 public:
  explicit ConstantFoldingPass(ConstantFoldingConfig config) : config_(std::move(config)) {}
  std::string_view name() const override { return kName; }
  std::string_view description() const override {
    return "computes beforehand what follows from constants and from known shapes";
  }
  OptLevel level() const override { return OptLevel::kBasic; }
  bool keeps_editors() const override { return true; }

  Status run(std::shared_ptr<Graph>& graph, PassContext& context, PassResult& result) override {
    Folder folder(config_, context, result);
    PFRT_TRY(for_each_graph(*graph, context, [&](Editor& editor) -> Status {
      const uint64_t removed = editor.nodes_removed();
      Status status = folder.run(editor);
      result.stats.nodes_removed += editor.nodes_removed() - removed;
      return status;
    }));
    folder.finish();
    return run_rules(*graph, rules_of(RulePass::kFolding, OptLevel::kAll), {context, {}, true},
                     result);
  }

 private:
  const ConstantFoldingConfig config_;
};

}  // namespace

std::unique_ptr<Pass> constant_folding_pass(ConstantFoldingConfig config) {
  return std::make_unique<ConstantFoldingPass>(std::move(config));
}

}  // namespace pfrt
