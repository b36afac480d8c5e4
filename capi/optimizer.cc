// SPDX-License-Identifier: Apache-2.0
//
// Passes over a client's graph: built-in ones, those of plug-ins, and the client's own.
#include <algorithm>

#include "capi/handle/counted.h"
#include "capi/handle/env.h"
#include "capi/handle/graph.h"
#include "capi/handle/guard.h"
#include "capi/handle/options.h"
#include "capi/handle/slots.h"
#include "capi/plugin/client_pass.h"
#include "core/base/provider_name.h"
#include "core/environment/choose_providers.h"
#include "core/op/defs/standardise.h"
#include "core/pass/rules/rule_tables.h"
#include "core/provider/client_operator.h"
#include "core/session/optimise.h"
#include "core/session/pass_options.h"
#include "core/verify/verify.h"

struct pfrt_optimizer {
  [[no_unique_address]] pfrt::capi::Alive alive;
  pfrt_optimizer(std::shared_ptr<pfrt::Environment> state, const pfrt::Options& given)
      : env(std::move(state)),
        options(given),
        pipeline(pfrt::pipeline_config(given), &env->logger()) {}

  std::shared_ptr<pfrt::Environment> env;
  pfrt::Options options;
  pfrt::Pipeline pipeline;
  std::vector<std::string> names;
};

struct pfrt_optimization {
  [[no_unique_address]] pfrt::capi::Alive alive;
  pfrt::PassResult total;
  std::vector<pfrt::PassReport> reports;
  std::vector<pfrt_pass_stats> stats;  // one for each report
};

namespace pfrt::capi {
namespace {

constexpr double kPrepareUntil = 0.1, kOptimiseUntil = 0.95;  // of the progress of a run

class CustomPass final : public Pass {
 public:
  // |after| names the passes that it follows in its optimizer.
  explicit CustomPass(std::shared_ptr<const ClientPass> pass, std::vector<std::string> after = {})
      : pass_(std::move(pass)),
        after_names_(std::move(after)),
        after_(after_names_.begin(), after_names_.end()) {}
  std::string_view name() const override { return pass_->name; }
  std::string_view description() const override {
    return "a pass that a client or plug-in brought";
  }
  OptLevel level() const override { return static_cast<OptLevel>(pass_->level); }
  std::span<const std::string_view> after() const override { return after_; }

  Status run(std::shared_ptr<Graph>& graph, PassContext& context, PassResult& result) override {
    const uint64_t before = graph->node_count();
    const Stop stop = [&] { return context.progress ? context.progress->stop() : Status(); };
    PFRT_ASSIGN(std::shared_ptr<Graph> made, pass_->run(*graph, stop, result));
    if (!made) return {};
    PFRT_TRY(settle_edits(*made, is_canonical(*graph)));
    const uint64_t after = made->node_count();
    // A pass that counts nothing itself has removed or added something all the same.
    PassStats& stats = result.stats;
    if (stats.nodes_removed == 0 && after < before) stats.nodes_removed = before - after;
    if (stats.nodes_added == 0 && after > before) stats.nodes_added = after - before;
    graph = std::move(made);
    return {};
  }

 private:
  const std::shared_ptr<const ClientPass> pass_;
  const std::vector<std::string> after_names_;
  const std::vector<std::string_view> after_;
};

std::vector<std::string> split_at_commas(std::string_view list) {
  std::vector<std::string> out;
  while (!list.empty()) {
    const size_t comma = list.find(',');
    if (comma != 0) out.emplace_back(list.substr(0, comma));
    list = comma == list.npos ? std::string_view() : list.substr(comma + 1);
  }
  return out;
}

bool built_in(std::string_view name) {
  const auto all = built_in_passes(), more = passes_by_name();
  return std::ranges::find(all, name) != all.end() || std::ranges::find(more, name) != more.end();
}

Result<Options> given_options(const pfrt_options* options, const Options& fallback) {
  if (!options) return fallback;
  if (options->options.kind() != PFRT_OPTIONS_OPTIMIZER)
    return error(Code::kINVALID_ARGUMENT, "making an optimizer: the options are of kind ",
                 options_kind_name(options->options.kind()), ", not optimizer");
  return options->options;
}

pfrt_status* create(pfrt_env* env, const pfrt_options* options, pfrt_optimizer** out) {
  return guard([&]() -> Status {
    if (!env || !out) return null_argument(env ? "out_optimizer" : "env");
    *out = nullptr;
    PFRT_ASSIGN(const Options given, given_options(options, Options(PFRT_OPTIONS_OPTIMIZER)));
    *out = new pfrt_optimizer(env->state, given);
    return {};
  });
}

void release_optimizer(pfrt_optimizer* optimizer) {
  const Inside library;
  const os::ForkScope scope;
  delete optimizer;
}

Status add(pfrt_optimizer& o, std::unique_ptr<Pass> pass) {
  PFRT_TRY(o.pipeline.add(std::move(pass)));
  o.names = o.pipeline.names();
  return {};
}

pfrt_status* add_default_passes(pfrt_optimizer* o) {
  return guard([&]() -> Status {
    if (!o) return null_argument("optimizer");
    for (std::string_view name : built_in_passes()) {
      std::unique_ptr<Pass> pass = built_in_pass(name, o->options);
      if (pass->level() <= o->pipeline.config().level) PFRT_TRY(add(*o, std::move(pass)));
    }
    return {};
  });
}

pfrt_status* add_pass(pfrt_optimizer* o, pfrt_string name, const pfrt_options* options) {
  return guard([&]() -> Status {
    if (!o) return null_argument("optimizer");
    PFRT_ASSIGN(const Options given, given_options(options, o->options));
    if (auto pass = built_in_pass(view(name), given)) return add(*o, std::move(pass));
    Registry& registry = o->env->registry();
    PFRT_TRY(registry.open_passes());
    std::string known;
    for (const auto& names : {built_in_passes(), passes_by_name()})
      for (std::string_view one : names) known += message(known.empty() ? "" : ", ", one);
    for (const auto& pass : registry.passes()) {
      if (pass->name == view(name)) return add(*o, std::make_unique<CustomPass>(pass));
      known += ", " + pass->name;
    }
    return error(Code::kNOT_FOUND, "adding pass '", name, "': there are ", known);
  });
}

pfrt_status* add_custom_pass(pfrt_optimizer* o, const pfrt_custom_pass* pass) {
  std::shared_ptr<void> keep;
  return guard([&]() -> Status {
    if (!pass) return null_argument("pass");
    const pfrt_custom_pass given = abi::known(pass);
    if (given.release) keep = lifetime(given.release, given.user);
    PFRT_TRY(abi::check(*pass));
    if (!o) return null_argument("optimizer");
    if (built_in(view(given.name)))
      return error(Code::kINVALID_ARGUMENT, "adding pass '", given.name,
                   "' of the client: a built-in pass has that name");
    PFRT_ASSIGN(auto made, client_pass(given, keep, o->env->logger(), "adding"));
    return add(*o,
               std::make_unique<CustomPass>(std::move(made), split_at_commas(view(given.after))));
  });
}

size_t pass_count(const pfrt_optimizer* o) { return o ? o->names.size() : 0; }
pfrt_string pass_at(const pfrt_optimizer* o, size_t index) {
  return o && index < o->names.size() ? to_c(o->names[index]) : to_c("");
}

// Makes |source| open the device of dataflow.device, where that belongs to the provider of
// dataflow.target_backend.
Status choose_device(const Options& options, ProviderSource& source) {
  const std::string target = options.get(optimizer_option::kDataflowTargetBackend);
  const std::string device = options.get(optimizer_option::kDataflowDevice);
  if (device.empty() || !names_provider(target, source.name)) return {};
  const std::vector<std::string> words = device_words(*source.table);
  if (std::ranges::find(words, device) == words.end())
    return error(Code::kINVALID_ARGUMENT, "optimising a graph: dataflow.device is '", device,
                 "', which ", source.name, " does not open; it opens ",
                 view(source.table->devices));
  source.device = device;
  return {};
}

// Returns the providers that passes ask: those of the options, and the backends that passes are
// for.
Result<std::vector<Candidate>> candidates_of(pfrt_optimizer& o, const Stop& stop) {
  std::vector<Candidate> out;
  const auto open = [&](const std::string& asked) -> Status {
    PFRT_ASSIGN(ProviderSource source, o.env->provider_source(asked));
    if (std::ranges::find(out, source.name, &Candidate::name) != out.end()) return {};
    PFRT_TRY(choose_device(o.options, source));
    PFRT_ASSIGN(auto provider, o.env->open_device(std::move(source), stop));
    out.push_back({provider->name(), provider, {}});
    return {};
  };
  for (const std::string& name : o.options.get(optimizer_option::kProviders)) PFRT_TRY(open(name));
  for (const std::string& target : {o.options.get(optimizer_option::kFusionTargetBackend),
                                    o.options.get(optimizer_option::kLayoutTargetBackend),
                                    o.options.get(optimizer_option::kDataflowTargetBackend)})
    if (!target.empty()) PFRT_TRY(open(target));
  return out;
}

pfrt_pass_stats stats_of(const PassResult& result) {
  pfrt_pass_stats out{};
  out.struct_size = sizeof out;
  out.modified = result.modified;
  out.nodes_removed = result.stats.nodes_removed;
  out.nodes_added = result.stats.nodes_added;
  out.nodes_fused = result.stats.nodes_fused;
  out.constants_folded = result.stats.constants_folded;
  out.initializers_removed = result.stats.initializers_removed;
  return out;
}

pfrt_status* run(pfrt_optimizer* o, pfrt_graph* graph, pfrt_string pass, uint32_t until_fixed_point,
                 pfrt_optimization** out) {
  return guard([&]() -> Status {
    if (!o || !graph || !out)
      return null_argument(!o ? "optimizer" : !graph ? "graph" : "out_result");
    *out = nullptr;
    PFRT_TRY(graph->open());
    if (graph->graph->depth > 0)
      return error(Code::kINVALID_ARGUMENT, "optimising graph '", graph->graph->name,
                   "': it is the body of a node; optimise the graph it is in");
    std::vector<std::string> skipped = o->options.get(optimizer_option::kSkipPasses);
    std::erase_if(skipped, [&](const std::string& name) {
      return std::ranges::find(o->names, name) != o->names.end();
    });
    PFRT_TRY(check_pass_names(skipped, "optimising a graph"));
    const EnvironmentScope scope(*o->env);
    Progress progress = o->options.progress();
    PFRT_TRY(progress.stage("prepare", kPrepareUntil).prepend("optimising a graph"));
    const std::string_view only = view(pass);
    const bool canonical =
        only.empty() ? std::ranges::any_of(o->names, [](const auto& n) { return built_in(n); })
                     : built_in(only);
    const bool names_tie = o->options.get(optimizer_option::kStrictDimensionNames);
    PFRT_ASSIGN(auto operators, o->env->registry().operators_for(*graph->graph));
    PFRT_ASSIGN(Prepared work,
                prepare_graph(*graph->graph, operators, canonical, names_tie, progress));
    PFRT_TRY(progress.stage("optimise", kOptimiseUntil).prepend("optimising a graph"));
    CompileServices with{{}, &o->env->packed(), &o->env->logger(), progress};
    const Stop stop = [&progress] { return progress.stop(); };
    PFRT_ASSIGN(with.candidates, candidates_of(*o, stop));
    PFRT_TRY(add_client_operators(operators, with.logger, with.candidates));
    std::unique_ptr<Verifier> verifier;
    if (o->options.get(optimizer_option::kVerify) == "on")
      verifier = std::make_unique<Verifier>(Verifier::Context{with, {}});
    PassServices services(std::move(with), verifier.get());
    PassContext context = services.context();
    auto result = std::make_unique<pfrt_optimization>();
    o->pipeline.clear_reports();
    if (!only.empty())
      PFRT_TRY(o->pipeline.run_pass(only, work.graph, context, result->total));
    else if (until_fixed_point)
      PFRT_TRY(o->pipeline.run_until_fixed_point(work.graph, context, result->total));
    else
      PFRT_TRY(o->pipeline.run(work.graph, context, result->total));
    result->reports = o->pipeline.reports();
    for (const PassReport& report : result->reports)
      result->stats.push_back(stats_of(report.result));
    PFRT_TRY(progress.stop().prepend("optimising a graph"));
    finish_graph(work);
    graph->graph->swap(*work.graph);
    graph->edited();
    // It is done, whoever wants it to stop now.
    (void)progress.stage("done", 1.0).ok();
    (void)progress.at(1).ok();
    *out = result.release();
    return {};
  });
}

void release_result(pfrt_optimization* result) { delete result; }

pfrt_status* totals(const pfrt_optimization* result, pfrt_pass_stats* out) {
  return guard([&]() -> Status {
    if (!result || !out) return null_argument(result ? "out_stats" : "result");
    return write(out, stats_of(result->total));
  });
}

size_t report_count(const pfrt_optimization* result) { return result ? result->reports.size() : 0; }

pfrt_status* report_at(const pfrt_optimization* result, size_t index, pfrt_pass_report* out) {
  return guard([&]() -> Status {
    if (!result || !out) return null_argument(result ? "out_report" : "result");
    if (index >= result->reports.size())
      return error(Code::kINVALID_ARGUMENT, "reading report ", index, " of ",
                   result->reports.size());
    const PassReport& from = result->reports[index];
    pfrt_pass_report report{};
    report.runs = from.runs;
    report.pass = to_c(from.pass);
    report.milliseconds = from.ms;
    report.nodes_before = from.nodes_before;
    report.nodes_after = from.nodes_after;
    report.stats = &result->stats[index];
    return write(out, report);
  });
}

size_t rule_count(const pfrt_optimization* result, size_t report) {
  return result && report < result->reports.size()
             ? result->reports[report].result.stats.rules.size()
             : 0;
}

pfrt_status* rule_at(const pfrt_optimization* result, size_t report, size_t index,
                     pfrt_string* out_rule, uint64_t* out_count) {
  return guard([&]() -> Status {
    if (!result || !out_rule || !out_count)
      return null_argument(!result ? "result" : !out_rule ? "out_rule" : "out_count");
    if (index >= rule_count(result, report))
      return error(Code::kINVALID_ARGUMENT, "reading rule ", index, " of report ", report);
    const auto& rules = result->reports[report].result.stats.rules;
    const auto at = std::next(rules.begin(), static_cast<std::ptrdiff_t>(index));
    *out_rule = to_c(at->first);
    *out_count = at->second;
    return {};
  });
}

size_t warning_count(const pfrt_optimization* result) {
  return result ? result->total.warnings.size() : 0;
}
pfrt_string warning_at(const pfrt_optimization* result, size_t index) {
  return result && index < result->total.warnings.size() ? to_c(result->total.warnings[index])
                                                         : to_c("");
}

size_t known_rule_count() { return all_rules().size(); }

pfrt_status* known_rule_at(size_t index, pfrt_string* out_pass, pfrt_string* out_rule,
                           pfrt_string* out_level, pfrt_string* out_text) {
  return guard([&]() -> Status {
    if (!out_pass || !out_rule || !out_level || !out_text) return null_argument("out");
    const auto& all = all_rules();
    if (index >= all.size())
      return error(Code::kINVALID_ARGUMENT, "reading rewrite ", index, " of ", all.size());
    *out_pass = to_c(all[index].pass);
    *out_rule = to_c(all[index].name);
    const std::optional<OptLevel> level = all[index].level;
    *out_level = to_c(level ? level_word(*level) : "by name");
    *out_text = to_c(all[index].what);
    return {};
  });
}

}  // namespace

const pfrt_optimizer_api kOptimizerApi = {
    sizeof(pfrt_optimizer_api),
    PFRT_ABI_VERSION,
    create,
    last_call<release_optimizer, pfrt_optimizer>,
    add_default_passes,
    add_pass,
    add_custom_pass,
    pass_count,
    pass_at,
    run,
    last_call<release_result, pfrt_optimization>,
    totals,
    report_count,
    report_at,
    rule_count,
    rule_at,
    warning_count,
    warning_at,
    known_rule_count,
    known_rule_at,
};

}  // namespace pfrt::capi
