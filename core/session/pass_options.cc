// SPDX-License-Identifier: Apache-2.0
#include "core/session/pass_options.h"

#include <algorithm>
#include <array>

#include "core/ir/verify.h"
#include "core/model/model.h"
#include "core/op/defs/standardise.h"
#include "core/op/engine/canonicalise.h"
#include "core/op/engine/check_operators.h"
#include "core/pass/engine/passes.h"

namespace pfrt {
namespace {

constexpr std::array<std::string_view, 5> kPasses{"ConstantFoldingPass", "DeadCodeEliminationPass",
                                                  "CSEPass", "OperatorFusionPass",
                                                  "LayoutOptimizationPass"};
constexpr std::array<std::string_view, 1> kPassesByName{"DataflowPass"};
constexpr std::array<std::string_view, 4> kLevels{"none", "basic", "extended", "all"};

ConstantFoldingConfig folding_config(const Options& o) {
  ConstantFoldingConfig config;
  config.max_tensor_bytes =
      static_cast<uint64_t>(o.get(optimizer_option::kConstantFoldingMaxTensorBytes));
  config.fold_shape_ops = o.get(optimizer_option::kConstantFoldingFoldShapeOps);
  config.fold_expensive_ops = o.get(optimizer_option::kConstantFoldingFoldExpensiveOps);
  config.exclude_ops = o.get(optimizer_option::kConstantFoldingExcludeOps);
  return config;
}

FusionConfig fusion_config(const Options& o) {
  FusionConfig config;
  config.fuse_conv_bn = o.get(optimizer_option::kFusionFuseConvBn);
  config.fuse_conv_bn_activation = o.get(optimizer_option::kFusionFuseConvBnActivation);
  config.fuse_matmul_add = o.get(optimizer_option::kFusionFuseMatmulAdd);
  config.fuse_elementwise_activation = o.get(optimizer_option::kFusionFuseElementwiseActivation);
  config.check_backend_support = o.get(optimizer_option::kFusionCheckBackendSupport);
  config.target_backend = o.get(optimizer_option::kFusionTargetBackend);
  return config;
}

LayoutConfig layout_config(const Options& o) {
  LayoutConfig config;
  const std::string layout = o.get(optimizer_option::kLayoutConvLayout);
  config.conv_layout = layout == "nhwc"     ? Layout::kNhwc
                       : layout == "nc4hw4" ? Layout::kNc4hw4
                                            : Layout::kNchw;
  config.insert_transposes = o.get(optimizer_option::kLayoutInsertTransposes);
  config.propagate_layout = o.get(optimizer_option::kLayoutPropagateLayout);
  config.target_backend = o.get(optimizer_option::kLayoutTargetBackend);
  return config;
}

template <typename Fn>
void for_each_node(Graph& graph, Fn fn) {
  for (NodeId id : graph.node_ids()) {
    fn(*graph.node(id));
    for (Attribute& a : graph.node(id)->attrs) {
      if (a.graph) for_each_node(*a.graph, fn);
      for (const auto& body : a.graphs) for_each_node(*body, fn);
    }
  }
}

}  // namespace

std::span<const std::string_view> built_in_passes() { return kPasses; }
std::span<const std::string_view> passes_by_name() { return kPassesByName; }

Status check_pass_names(const std::vector<std::string>& names, std::string_view doing) {
  for (const std::string& name : names) {
    if (std::ranges::find(kPasses, name) != kPasses.end()) continue;
    std::string known;
    for (std::string_view one : kPasses) known += message(known.empty() ? "" : ", ", one);
    return error(Code::kINVALID_ARGUMENT, doing, ": skip_passes names '", name,
                 "'; the passes that can be left out are ", known);
  }
  return {};
}

OptLevel level_of(std::string_view word) {
  const auto at = std::ranges::find(kLevels, word);
  return at == kLevels.end() ? OptLevel::kAll : static_cast<OptLevel>(at - kLevels.begin());
}

std::string_view level_word(OptLevel level) { return kLevels[static_cast<size_t>(level)]; }

PipelineConfig pipeline_config(const Options& o) {
  PipelineConfig config;
  config.level = level_of(o.get(optimizer_option::kLevel));
  config.max_iterations =
      static_cast<uint32_t>(std::min<int64_t>(o.get(optimizer_option::kMaxIterations), 1000));
  config.verbose = o.get(optimizer_option::kVerbose);
  config.validate_after_pass = o.get(optimizer_option::kValidateAfterPass);
  config.skip_passes = o.get(optimizer_option::kSkipPasses);
  return config;
}

std::unique_ptr<Pass> built_in_pass(std::string_view name, const Options& o) {
  const OptLevel level = level_of(o.get(optimizer_option::kLevel));
  if (name == kPasses[0]) return constant_folding_pass(folding_config(o));
  if (name == kPasses[1])
    return dead_code_pass({o.get(optimizer_option::kDceRemoveInitializers),
                           o.get(optimizer_option::kDceRemoveIdentity),
                           o.get(optimizer_option::kDceRemoveDropout)});
  if (name == kPasses[2])
    return cse_pass({o.get(optimizer_option::kCseCheckAttributes),
                     static_cast<uint64_t>(o.get(optimizer_option::kCseMaxComparisons))});
  if (name == kPasses[3])
    return fusion_pass(fusion_config(o), std::max(level, OptLevel::kExtended));
  if (name == kPasses[4]) return layout_pass(layout_config(o));
  if (name == kPassesByName[0])
    return dataflow_pass({o.get(optimizer_option::kDataflowTargetBackend)});
  return nullptr;
}

Status settle_edits(Graph& graph, bool canonical, const Progress* progress) {
  PFRT_TRY(graph.bind_captures());
  PFRT_TRY(verify(graph));
  if (!canonical) return {};
  for_each_node(graph, [](Node& node) { node.canonical = false; });
  PFRT_TRY(check_operators(graph));
  number_dims(graph);
  CanonicaliseWatch watch;
  watch.progress = progress;
  return canonicalise(graph, watch);
}

namespace {

void untie(Prepared& work) {
  Graph& graph = *work.graph;
  std::unordered_map<uint32_t, size_t> uses;
  const auto each_dim = [&](const auto& fn) {
    for (const ValueId id : graph.inputs)
      for (Dim& dim : graph.at(id).type.shape)
        if (dim.symbolic()) fn(dim);
  };
  each_dim([&](const Dim& dim) { ++uses[dim.symbol()]; });
  each_dim([&](Dim& dim) {
    if (uses[dim.symbol()] < 2) return;
    const Dim own = graph.symbols->fresh();
    work.untied.emplace(own.symbol(), dim);
    dim = own;
  });
}

// Dimensions with the names that they had before untie.
class NamedAgain {
 public:
  NamedAgain(SymbolTable& symbols, const std::unordered_map<uint32_t, Dim>& untied)
      : symbols_(symbols), known_(untied) {}

  void rename(Graph& graph) {
    for (ValueId id = 0; id < graph.value_count(); ++id) {
      for (Type* type : {&graph.at(id).type, &graph.at(id).declared})
        for (Dim& dim : type->shape) dim = named(dim);
    }
    for (NodeId id : graph.node_ids()) {
      for (Attribute& a : graph.node(id)->attrs) {
        if (a.graph) rename(*a.graph);
        for (const auto& body : a.graphs) rename(*body);
      }
    }
  }

 private:
  Dim named(const Dim& dim) {
    if (!dim.symbolic()) return dim;
    if (const auto at = known_.find(dim.symbol()); at != known_.end()) return at->second;
    const DimExpression e = symbols_.expression(dim);
    const Dim out = e.op == DimOp::kNone ? dim : of(e.op, named(e.a), named(e.b));
    known_.emplace(dim.symbol(), out);
    return out;
  }
  Dim of(DimOp op, const Dim& a, const Dim& b) {
    switch (op) {
      case DimOp::kAdd:
        return symbols_.add(a, b);
      case DimOp::kSub:
        return symbols_.sub(a, b);
      case DimOp::kMul:
        return symbols_.mul(a, b);
      case DimOp::kDiv:
        return symbols_.floor_div(a, b);
      case DimOp::kMin:
        return symbols_.min(a, b);
      case DimOp::kMax:
        return symbols_.max(a, b);
      case DimOp::kBroadcast:
        return a == b ? a : symbols_.broadcast(a, b);
      case DimOp::kNone:
        break;
    }
    return {};
  }

  SymbolTable& symbols_;
  std::unordered_map<uint32_t, Dim> known_;
};

}  // namespace

Result<Prepared> prepare_graph(const Graph& graph, const OperatorSet::Ptr& operators,
                               bool canonical, bool names_tie, const Progress& progress) {
  Prepared out;
  out.graph = graph.clone();
  use_operators(*out.graph, operators);
  if (!canonical) return out;
  default_opsets(*out.graph);
  if (!names_tie) untie(out);
  PFRT_TRY(settle_edits(*out.graph, true, &progress));
  for (ValueId id : out.graph->inputs) {
    GraphValue& value = out.graph->at(id);
    if (value.constant) out.set_aside.emplace_back(id, std::exchange(value.constant, nullptr));
  }
  return out;
}

void finish_graph(Prepared& prepared) {
  for (auto& [id, constant] : prepared.set_aside)
    prepared.graph->at(id).constant = std::move(constant);
  // The graph is written in standard operators, at the lowest opset that has them, where the
  // standard can express it all.
  if (is_canonical(*prepared.graph)) {
    std::shared_ptr<Graph> standard = prepared.graph->clone();
    if (standardise(*standard).ok()) prepared.graph = std::move(standard);
  }
  if (!prepared.untied.empty())
    NamedAgain(*prepared.graph->symbols, prepared.untied).rename(*prepared.graph);
  name_captures(*prepared.graph);
  for_each_node(*prepared.graph, [](Node& node) { node.canonical = false; });
}

}  // namespace pfrt
