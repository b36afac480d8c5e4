// SPDX-License-Identifier: Apache-2.0
#include "core/session/prepare.h"

#include <algorithm>

#include "core/ir/graph_counts.h"
#include "core/ir/verify.h"
#include "core/options/options.h"
#include "core/session/optimise.h"

namespace pfrt {
namespace {

// A rewritten graph must be valid, and look the same from outside.
Status check_rewrite(const Graph& before, Graph& after) {
  const auto same = [&](const std::vector<ValueId>& a, const std::vector<ValueId>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](ValueId x, ValueId y) {
      return before.at(x).name == after.at(y).name &&
             !before.at(x).constant == !after.at(y).constant;
    });
  };
  for (const bool inputs : {true, false})
    if (!same(inputs ? before.inputs : before.outputs, inputs ? after.inputs : after.outputs))
      return error(Code::kVALIDATION, "the graph's ", inputs ? "inputs" : "outputs",
                   " are others than before; a pass must keep them, in order and by name");
  PFRT_TRY(after.bind_captures());
  return verify(after);
}

// Each dimension of an input that is no number gets a symbol of its own.
void untie_dims(Graph& graph) {
  for (const ValueId id : graph.inputs)
    for (Dim& dim : graph.at(id).type.shape)
      if (!dim.known()) dim = graph.symbols->fresh();
}

}  // namespace

int level_number(std::string_view level) {
  return level == "none" ? 0 : level == "basic" ? 1 : level == "extended" ? 2 : 3;
}

Status Preparation::add_extra_outputs(Graph& graph) const {
  for (const std::string& name : config_.extra_outputs) {
    const ValueId id = graph.find(name);
    if (id == kNoId) {
      std::vector<std::string> names;
      for (ValueId v = 0; v < graph.value_count(); ++v) names.push_back(graph.at(v).name);
      const std::string near = nearest_name(name, names);
      return error(Code::kNOT_FOUND, "creating a session: extra output '", name,
                   "' is not a value of the graph", near.empty() ? "" : "; the nearest is '", near,
                   near.empty() ? "" : "'");
    }
    graph.outputs.push_back(id);
  }
  return {};
}

// Runs the runtime's own passes on a graph in canonical form.
Result<OptimisedGraph> Preparation::optimise(const Call& call, const Graph& canonical,
                                             Verifier* verifier) const {
  const auto level = static_cast<OptLevel>(level_number(config_.level));
  std::shared_ptr<Graph> graph = canonical.clone();
  PFRT_TRY(add_extra_outputs(*graph));
  OptimisedGraph out;
  if (level != OptLevel::kNone) {
    const ProfileSpan span(call.progress.profile(), "optimise");
    PFRT_ASSIGN(CompileServices own, services_(call.candidates, *graph, call.progress));
    PassServices services(std::move(own), verifier);
    PassContext context = services.context();
    context.in_session = true;
    PipelineConfig config;
    config.level = level;
    config.verbose = config_.verbose;
    config.skip_passes = config_.skip_passes;
    Pipeline pipeline = Pipeline::standard(std::move(config), logger_);
    PassResult result;
    PFRT_TRY(pipeline.run_until_fixed_point(graph, context, result));
    out.reports = pipeline.reports();
  }
  out.graph = std::move(graph);
  return out;
}

// A key of everything besides the model that the optimised graph depends on.
std::string Preparation::optimised_key(const std::vector<Candidate>& candidates) const {
  std::string key = message(config_.key, "/", config_.level);
  const auto list = [&](const std::vector<std::string>& names) {
    for (const std::string& name : names) key += message("/", name.size(), ":", name);
    key += "//";
  };
  std::vector<std::string> providers;
  for (const Candidate& c : candidates)
    if (c.provider) providers.push_back(c.provider->identity());
  list(providers);
  list(config_.skip_passes);
  list(config_.extra_outputs);
  return key + message(reinterpret_cast<uintptr_t>(config_.operators.get()));
}

Result<std::unique_ptr<Verifier>> Preparation::make_verifier(const Call& call,
                                                             const Model& model) const {
  if (!config_.verify) return std::unique_ptr<Verifier>();
  PFRT_ASSIGN(CompileServices own, services_(call.candidates, model.graph(), call.progress));
  return std::make_unique<Verifier>(
      Verifier::Context{std::move(own), config_.samples, call.samples});
}

Result<std::string> Preparation::difference(Verifier& verifier, const Graph& before,
                                            const Graph& after) const {
  PFRT_ASSIGN(const auto was, make_canonical(before.clone(), config_.operators));
  auto is = make_canonical(after.clone(), config_.operators);
  if (is.status().code() == Code::kVALIDATION || is.status().code() == Code::kSHAPE_MISMATCH)
    return is.status().message();
  if (!is.ok()) return is.take_status();
  return verifier.difference(was, *is);
}

// The model's graph, or |graph| in its place, as the clients' passes leave it; null when none
// changed anything and there was no |graph|.
Result<std::shared_ptr<Graph>> Preparation::run_client_passes(
    const Call& call, const Model& model, std::shared_ptr<Graph> graph, Verifier* verifier,
    std::vector<std::string>& notes) const {
  const Stop stop = [&] { return call.progress.stop(); };
  for (const auto& pass : config_.passes) {
    const Graph& before = graph ? *graph : model.graph();
    PassResult result;
    Profile* const profile = call.progress.profile();
    const ProfileSpan span(profile, profile ? "pass " + pass->name : std::string());
    auto made = pass->run(before, stop, result);
    if (!made.ok()) return made.take_status().prepend("pass '" + pass->name + "'");
    const bool changed = *made != nullptr;
    notes.push_back(message("pass '", pass->name, "' ",
                            changed ? "changed the graph" : "found nothing to change"));
    notes.insert(notes.end() - 1, result.warnings.begin(), result.warnings.end());
    for (const std::string& warning : result.warnings)
      if (logger_) logger_->log(PFRT_LOG_WARNING, "pass '", pass->name, "': ", warning);
    if (!changed) continue;
    notes.back() +=
        message(": ", count_nodes(before), " nodes before, ", count_nodes(**made), " after");
    if (Status status = check_rewrite(before, **made); !status.ok())
      return status.prepend("after pass '" + pass->name + "'");
    if (verifier) {
      PFRT_ASSIGN(const std::string wrong, difference(*verifier, before, **made));
      if (!wrong.empty()) {
        notes.push_back(message("verification: pass '", pass->name, "' changes results (", wrong,
                                ") and was undone as a whole"));
        if (logger_) logger_->log(PFRT_LOG_WARNING, notes.back());
        continue;
      }
    }
    graph = made.take();
  }
  return graph;
}

Result<std::shared_ptr<const OptimisedGraph>> Preparation::prepare(
    const Call& call, const Inputs& inputs, std::vector<std::string>& notes) const {
  PFRT_ASSIGN(const Model* const model, model_->loaded(call.progress));
  std::shared_ptr<Graph> graph;
  if (!inputs.fed.empty() || inputs.untied) {
    graph = model->graph().clone();
    for (const std::string& name : inputs.fed) graph->make_fed(graph->value(name));
    if (inputs.untied) untie_dims(*graph);
  }
  PFRT_ASSIGN(const std::unique_ptr<Verifier> verifier, make_verifier(call, *model));
  PFRT_ASSIGN(graph, run_client_passes(call, *model, std::move(graph), verifier.get(), notes));
  const bool rewritten = graph != nullptr;
  const ProfileSpan span(call.progress.profile(), "prepare the graph");
  PFRT_ASSIGN(std::shared_ptr<const Graph> canonical,
              rewritten ? make_canonical(std::move(graph), config_.operators, &call.progress)
                        : model->canonical(config_.operators, call.progress));
  if (config_.level == "none" && config_.extra_outputs.empty())
    return std::make_shared<const OptimisedGraph>(OptimisedGraph{std::move(canonical), {}});
  const auto make = [&] { return optimise(call, *canonical, verifier.get()); };
  if (!rewritten && !verifier)
    return model->optimised(optimised_key(call.candidates), call.progress, make);
  PFRT_ASSIGN(OptimisedGraph made, make());
  if (verifier) {
    const std::vector<std::string> told = verifier->notes();
    notes.insert(notes.end(), told.begin(), told.end());
  }
  return std::make_shared<const OptimisedGraph>(std::move(made));
}

}  // namespace pfrt
