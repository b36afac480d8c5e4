// SPDX-License-Identifier: Apache-2.0
#include "core/session/model.h"

#include "core/ir/verify.h"
#include "core/op/infer.h"

namespace pfrt {
namespace {

// A graph built by hand has the newest opset unless it says otherwise.
void default_opsets(Graph& graph) {
  for (NodeId id : graph.node_ids()) {
    const Node& node = *graph.node(id);
    const std::string domain = node.domain == "ai.onnx" ? "" : node.domain;
    if (graph.opset(domain) == 0 && newest_opset(domain) > 0)
      graph.opsets[domain] = newest_opset(domain);
    for (const Attribute& a : node.attrs) {
      if (a.graph) default_opsets(*a.graph);
      for (const auto& g : a.graphs) default_opsets(*g);
    }
  }
  if (graph.opsets.empty()) graph.opsets[""] = newest_opset("");
}

void copy_types(const Graph& from, Graph& to) {
  for (ValueId id = 0; id < to.value_count(); ++id) {
    const ValueId other = from.find(to.at(id).name);
    if (other != kNoId && from.at(other).type.kind != PFRT_VALUE_UNSET && !to.at(id).constant &&
        !to.is_input(id))
      to.at(id).type = from.at(other).type;
  }
}

Result<std::shared_ptr<Graph>> make_canonical(std::shared_ptr<Graph> copy) {
  PFRT_TRY(check_operators(*copy));
  PFRT_TRY(canonicalise(*copy));
  return copy;
}

}  // namespace

Result<std::shared_ptr<Model>> Model::create(std::shared_ptr<Graph> graph, ModelInfo info,
                                             bool validate, bool infer_shapes,
                                             std::vector<std::string> warnings) {
  auto model = std::shared_ptr<Model>(new Model);
  default_opsets(*graph);
  PFRT_TRY(graph->bind_captures());
  if (validate) {
    PFRT_TRY(verify(*graph));
  } else {
    PFRT_TRY([&] {  // the planner needs an order in any case
      auto order = graph->topological_order();
      return order.ok() ? Status() : order.take_status();
    }());
  }
  model->graph_ = std::move(graph);
  model->info_ = std::move(info);
  model->warnings_ = std::move(warnings);
  const Graph& g = *model->graph_;
  model->info_.node_count = g.node_count();
  for (ValueId id : g.initializers()) {
    ++model->info_.initializer_count;
    const Tensor& t = g.at(id).constant->tensor;
    if (t.count() > 0) model->info_.parameter_count += static_cast<uint64_t>(t.count());
    model->info_.parameter_bytes += t.valid() ? t.bytes() : 0;
  }
  if (infer_shapes) {
    if (auto canonical = model->canonical(); canonical.ok()) {
      copy_types(*canonical.value(), *model->graph_);
    } else {
      model->warnings_.push_back("shapes of inner values are not known: " +
                                 canonical.status().message());
    }
  }
  return model;
}

Result<std::shared_ptr<const Graph>> Model::canonical() const {
  std::lock_guard lock(mutex_);
  if (!canonical_tried_) {
    canonical_tried_ = true;
    auto made = make_canonical(graph_->clone());
    if (made.ok()) {
      canonical_ = made.take();
    } else {
      canonical_status_ = made.take_status();
    }
  }
  if (!canonical_) return canonical_status_;
  return canonical_;
}

Result<std::shared_ptr<const Graph>> Model::canonical_without(
    const std::vector<ValueId>& fed) const {
  std::shared_ptr<Graph> copy = graph_->clone();
  for (ValueId id : fed) copy->at(id).constant = nullptr;
  PFRT_ASSIGN(auto made, make_canonical(std::move(copy)));
  return std::shared_ptr<const Graph>(std::move(made));
}

Status infer_types(Graph& graph) {
  default_opsets(graph);
  PFRT_TRY(graph.bind_captures());
  PFRT_TRY(verify(graph));
  PFRT_ASSIGN(auto canonical, make_canonical(graph.clone()));
  copy_types(*canonical, graph);
  return {};
}

}  // namespace pfrt
