// SPDX-License-Identifier: Apache-2.0
#include "core/model/model.h"

#include <algorithm>
#include <utility>

#include "core/base/lock.h"
#include "core/ir/graph_counts.h"
#include "core/ir/verify.h"
#include "core/op/engine/lookup.h"
#include "core/op/engine/operator_def.h"

namespace pfrt {
namespace {

constexpr double kCheckUntil = 0.95;  // of a load's progress

// |graph| for any values fed in place of its defaults; null where it has none, or no canonical form
// without them.
std::shared_ptr<const Graph> without_defaults(const Graph& graph, const OperatorSet::Ptr& operators,
                                              const Progress& progress) {
  const auto has_default = [&](ValueId id) { return graph.at(id).constant != nullptr; };
  if (std::ranges::none_of(graph.inputs, has_default)) return nullptr;
  std::shared_ptr<Graph> open = graph.clone();
  for (const ValueId id : open->inputs) open->make_fed(id);
  auto made = make_canonical(std::move(open), operators, &progress);
  return made.ok() ? made.take() : nullptr;
}

}  // namespace

Result<std::shared_ptr<Model>> Model::create(std::shared_ptr<Graph> graph, ModelInfo info,
                                             bool validate, bool infer_shapes,
                                             std::vector<std::string> warnings, Progress& progress,
                                             const OperatorSet::Ptr& operators) {
  auto model = std::shared_ptr<Model>(new Model);
  PFRT_TRY(progress.stage("check", kCheckUntil));
  use_operators(*graph, operators);
  default_opsets(*graph);
  graph->captures.clear();  // a model stands alone: what a body took from around it is missing
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
  model->built_in_only_ =
      !any_node(g, [](const Graph&, const Node& n) { return !is_built_in(n.domain, n.op); });
  const GraphCounts counts = count(g);
  model->info_.node_count = counts.nodes;
  model->info_.initializer_count = counts.initializers;
  model->info_.parameter_count = counts.parameters;
  model->info_.parameter_bytes = counts.parameter_bytes;
  model->files_.collect(g);
  if (infer_shapes) {
    PFRT_TRY(progress.stage("infer shapes", 1.0));
    if (auto canonical = model->canonical(operators, progress); canonical.ok()) {
      const auto open = without_defaults(*model->graph_, operators, progress);
      copy_types(open ? *open : *canonical.value(), *model->graph_);
      if (!model->canonical_.contradicted().empty())
        model->warnings_.push_back(model->canonical_.contradicted());
    } else if (progress.stopped()) {
      return canonical.take_status();
    } else {
      model->warnings_.push_back("shapes of inner values are not known: " +
                                 canonical.status().message());
    }
  }
  model->complete_ = true;
  PFRT_TRY(model->intact(true));
  PFRT_TRY(progress.stage("done", 1.0));
  model->load_stages_ = progress.stages();
  return model;
}

std::shared_ptr<Model> Model::known(Known known) {
  auto model = std::shared_ptr<Model>(new Model);
  model->graph_ = std::move(known.signature);
  model->info_ = std::move(known.info);
  model->warnings_ = std::move(known.warnings);
  model->files_.set_known(std::move(known.files), std::move(known.content));
  model->import_ = std::move(known.import);
  model->complete_ = true;
  return model;
}

Result<const Model*> Model::loaded(const Progress& progress) const {
  if (!import_) return this;
  const auto lock = lock_unless(importing_, [&] { return progress.stopped(); });
  if (!lock.owns_lock()) return progress.stop();
  if (!loaded_) {
    Progress own = progress.quiet();
    PFRT_ASSIGN(loaded_, import_(own));
  }
  return loaded_.get();
}

Result<std::shared_ptr<const Graph>> Model::canonical(const OperatorSet::Ptr& operators,
                                                      const Progress& progress) const {
  if (import_) {
    PFRT_ASSIGN(const Model* model, loaded(progress));
    return model->canonical(operators, progress);
  }
  return canonical_.get(*graph_, built_in_only_ ? nullptr : operators, !complete_, progress);
}

}  // namespace pfrt
