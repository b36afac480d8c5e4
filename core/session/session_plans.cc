// SPDX-License-Identifier: Apache-2.0
//
// The plans of a session: made of its optimised graph or of its entry in the cache, kept there, and
// made anew for requests of another kind.
#include <algorithm>
#include <utility>

#include "core/base/digest.h"
#include "core/base/os/floating_point.h"
#include "core/batch/batch_rows.h"
#include "core/exec/device_copy.h"
#include "core/pass/rules/quantized/report.h"
#include "core/provider/client_operator.h"
#include "core/provider/fault.h"
#include "core/session/pass_options.h"
#include "core/session/session.h"
#include "core/verify/precision_search.h"

namespace pfrt {
namespace {

// Parts of the progress of creating a session; choosing precisions compiles and runs the graph many
// times.
constexpr double kOptimiseUntil = 0.5, kOptimiseUntilOfAuto = 0.2, kChooseUntil = 0.8,
                 kCompileUntil = 0.95;

// Checks each sample that the client's source gives.
class CheckedSamples final : public SampleSource {
 public:
  CheckedSamples(std::unique_ptr<SampleSource> from, const std::vector<PortInfo>& ports,
                 size_t required, const SymbolTable& symbols)
      : from_(std::move(from)), ports_(ports), required_(required), symbols_(symbols) {}
  Status rewind() override {
    index_ = 0;
    return from_->rewind();
  }
  Result<std::optional<NamedValues>> next() override {
    PFRT_ASSIGN(std::optional<NamedValues> sample, from_->next());
    if (!sample) return sample;
    Status status = check_sample(ports_, required_, symbols_, *sample, index_++);
    if (!status.ok()) return std::move(status.prepend("creating a session"));
    return sample;
  }

 private:
  const std::unique_ptr<SampleSource> from_;
  const std::vector<PortInfo>& ports_;
  const size_t required_;
  const SymbolTable& symbols_;
  size_t index_ = 0;
};

}  // namespace

Status Session::make_plans(Preparation::Config config, const Options& options) {
  const SymbolTable& symbols = *model_->signature().symbols;
  for (size_t i = 0; i < config.samples.size(); ++i)
    PFRT_TRY(check_sample(inputs_, required_inputs_, symbols, config.samples[i], i)
                 .prepend("creating a session"));
  if (sample_source_)
    sample_source_ = std::make_unique<CheckedSamples>(std::move(sample_source_), inputs_,
                                                      required_inputs_, symbols);
  PFRT_TRY(check_batch());
  config.key = message(reinterpret_cast<uintptr_t>(packed_), "/", max_pixels_);
  if (cache_) cache_key_ = cache_key(options, config);
  preparation_ = std::make_unique<Preparation>(
      model_, std::move(config),
      [this](std::vector<Candidate> candidates, const Graph& graph, const Progress& progress) {
        return services(std::move(candidates), graph, progress);
      },
      logger_);
  auto optimised = find_stored();
  PackedConstants packed;
  const bool keep = !optimised && !cache_key_.empty();
  if (!optimised) {
    const bool choose = options.get(session_option::kPrecision) == "auto";
    PFRT_TRY(progress_.stage("optimise", choose ? kOptimiseUntilOfAuto : kOptimiseUntil));
    PFRT_ASSIGN(optimised, preparation_->prepare(
                               {provider_set_->candidates(), progress_, sample_source_.get()}, {},
                               pass_notes_));
    if (choose) {
      PFRT_TRY(progress_.stage("choose precisions", kChooseUntil));
      const ProfileSpan span(progress_.profile(), "choose precisions");
      PFRT_TRY(choose_precisions(optimised->graph));
    }
  }
  PFRT_TRY(check_batch_of(*optimised->graph));
  PFRT_TRY(check_named_precisions(*optimised->graph));
  PFRT_TRY(progress_.stage("compile", kCompileUntil));
  PFRT_ASSIGN(plans_, plan_for_all(std::move(optimised), progress_, keep ? &packed : nullptr));
  PFRT_TRY(progress_.stop());
  if (keep) keep_plans(packed);
  sample_source_.reset();
  executor_.reset();
  provider_set_->succeeded();
  return {};
}

std::string Session::cache_key(const Options& options, const Preparation::Config& config) {
  const auto not_for = [&](const std::string& why) {
    cache_note_ = "not kept in the cache: " + why;
    return std::string();
  };
  if (!config.passes.empty()) return not_for("the client's passes may be others next time");
  if (!model_->built_in_only()) return not_for("it has operators of the client's or of plug-ins");
  if (config.verify || !config.samples.empty() || sample_source_)
    return not_for("it depends on samples of inputs");
  Digest digest;
  digest.add(std::string_view(library_identity()));
  for (const Candidate& candidate : provider_set_->candidates()) {
    digest.add(std::string_view(candidate.name));
    if (!candidate.provider) continue;
    const std::string identity = candidate.provider->lasting_identity();
    if (identity.empty())
      return not_for(candidate.name + " has no fingerprint that tells it from others");
    digest.add(std::string_view(identity));
  }
  // Options that change nothing in an entry.
  static constexpr std::string_view kElsewhere[] = {"cache_dir",
                                                    "create_timeout_ms",
                                                    "enable_mem_pattern",
                                                    "enable_mem_reuse",
                                                    "device",
                                                    "enable_profiling",
                                                    "log_level",
                                                    "num_threads",
                                                    "profile_file_prefix",
                                                    "providers",
                                                    "session.fallback",
                                                    "session.halve_batch",
                                                    "session.use_env_allocators",
                                                    "tune",
                                                    "tune_budget_s",
                                                    "tune_iterations",
                                                    "tune_repeats",
                                                    "tune_search",
                                                    "strict_dimension_names",
                                                    "verbose_optimization",
                                                    "session.device_reopen_ms"};
  for (const OptionRow& row : option_schema(PFRT_OPTIONS_SESSION)) {
    if (row.key.empty() || std::ranges::find(kElsewhere, row.key) != std::end(kElsewhere)) continue;
    digest.add(row.key);
    if (const auto text = options.text(row.key); text.ok()) digest.add(text.value());
  }
  for (const std::string& output : config.extra_outputs) digest.add(std::string_view(output));
  RunControl control;
  control.cancelled = progress_.cancel_flag();
  control.deadline_ns = progress_.deadline_ns();
  control.executor = executor_.get();
  control.width = width(0, executor_ ? executor_->width() : 0);
  const std::string content = model_->content(control);
  if (content.empty())
    return not_for(
        "the model was not loaded from a file, or from memory with a cache_dir of its own");
  digest.add(std::string_view(content));
  return digest.hex();
}

std::shared_ptr<const OptimisedGraph> Session::find_stored() {
  if (cache_key_.empty()) return nullptr;
  const ProfileSpan span(progress_.profile(), "find in the cache");
  // The plans of this session ask for bytes of its constants.
  const auto remake = [source = std::make_shared<Remade>(), weak = weak_from_this()](
                          const std::string& name, uint64_t bytes, void* out) {
    const auto session = weak.lock();
    if (!session) throw std::bad_alloc();
    session->remake(*source, name, bytes, out);
  };
  const auto stored = cache_->find(cache_key_, *model_, remake);
  if (!stored) {
    cache_note_ = "made anew and put into the cache, as " + cache_key_;
    return nullptr;
  }
  auto optimised = std::make_shared<OptimisedGraph>();
  const Compiled& compiled = stored->compiled;
  optimised->graph = compiled.graph;
  for (const CompiledReport& kept : compiled.reports) {
    PassReport& report = optimised->reports.emplace_back();
    report.pass = kept.name;
    report.nodes_before = kept.nodes_before;
    report.nodes_after = kept.nodes_after;
    for (const auto& [rule, count] : kept.rules)
      report.result.stats.rules[rule] = std::strtoull(count.c_str(), nullptr, 10);
    report.result.warnings = kept.warnings;
  }
  pass_notes_ = compiled.notes;
  for (const auto& [hint, note] : compiled.precisions)
    node_precision_.push_back({static_cast<pfrt_compile_hints>(hint), note});
  if (!node_precision_.empty()) node_precision_of_ = compiled.graph;
  optimised->stored = stored;
  cache_note_ = "from the cache, entry " + cache_key_;
  return optimised;
}

// Fills in a constant that the entry lacks because nobody had read it: the same passes make the
// graph again, which has it.
void Session::remake(Remade& remade, const std::string& name, uint64_t bytes, void* out) const {
  const std::lock_guard lock(remade.mutex);
  if (!remade.graph) {
    logger_->log(PFRT_LOG_INFO, "the graph is optimised again: constant '", name,
                 "' is not in the entry of the cache");
    std::vector<std::string> notes;
    auto made = preparation_->prepare({provider_set_->candidates(), Progress()}, {}, notes);
    if (made.ok()) remade.graph = made.value()->graph;
  }
  const ValueId id = remade.graph ? remade.graph->find(name) : kNoId;
  const Tensor* const tensor = id == kNoId ? nullptr : remade.graph->constant(id);
  if (!tensor || tensor->bytes() != bytes) {
    logger_->log(PFRT_LOG_ERROR, "constant '", name, "' of the cache's graph is not made again");
    throw std::bad_alloc();
  }
  tensor->copy_to(out);
}

void Session::keep_plans(const PackedConstants& packed) {
  const ProfileSpan span(progress_.profile(), "put into the cache");
  Compiled compiled;
  const OptimisedGraph& optimised = *plans_->optimised;
  compiled.graph = optimised.graph;
  for (const PassReport& report : optimised.reports) {
    CompiledReport& kept = compiled.reports.emplace_back();
    kept.name = report.pass;
    kept.nodes_before = report.nodes_before;
    kept.nodes_after = report.nodes_after;
    for (const auto& [rule, count] : report.result.stats.rules)
      kept.rules.emplace_back(rule, std::to_string(count));
    kept.warnings = report.result.warnings;
  }
  compiled.notes = pass_notes_;
  if (node_precision_of_ == optimised.graph)
    for (const NodePrecision& node : node_precision_)
      compiled.precisions.emplace_back(node.hint, node.note);
  compiled.packed = packed.buffers;
  compiled.packed_from = packed.sources;
  // The session is ready: a caller whose time is up gets it all the same.
  cache_->put(cache_key_, compiled, *model_, [this] { return progress_.stop(); });
}

Status Session::check_batch() const {
  if ((precision_ & PFRT_COMPILE_BATCH) == 0) return {};
  for (const Candidate& candidate : provider_set_->candidates())
    if (candidate.provider && !candidate.provider->keeps_rows_apart())
      return error(Code::kUNSUPPORTED, "creating a session: deterministic is 'batch', but ",
                   candidate.name, " does not say that it computes each row by itself; leave it ",
                   "out of the providers");
  return {};
}

Status Session::check_batch_of(const Graph& graph) const {
  if ((precision_ & PFRT_COMPILE_BATCH) == 0) return {};
  PFRT_ASSIGN(const std::string mixer, mixes_rows(graph));
  if (mixer.empty()) return {};
  return error(Code::kUNSUPPORTED, "creating a session: deterministic is 'batch', but ", mixer,
               ", so that a row's results depend on the others; leave the option at 'threads'");
}

Status Session::check_named_precisions(const Graph& graph) const {
  std::vector<std::string> missing;
  (void)precisions_of(graph, named_precisions_, precision_, &missing);
  if (missing.empty()) return {};
  const std::vector<std::string> names = precision_names(graph);
  const std::string near = nearest_name(missing.front(), names);
  return error(Code::kNOT_FOUND, "creating a session: node_precision names '", missing.front(),
               "', but no node of that name or that makes a value of it is left after "
               "optimisation",
               near.empty() ? "; 'pfrt explain' lists the nodes" : "; did you mean '", near,
               near.empty() ? "" : "'?");
}

Result<Session::Planned> Session::compile(const OptimisedGraph& optimised,
                                          std::vector<Candidate> candidates,
                                          const Progress& progress, PackedConstants* packed) const
    try {
  const std::shared_ptr<const Graph>& canonical = optimised.graph;
  PFRT_ASSIGN(CompileServices with, services(std::move(candidates), *canonical, progress));
  with.statistics = statistics_;
  with.tells = true;
  with.made = packed;
  with.tuning = tuning_.get();
  if (optimised.stored) with.stored = &optimised.stored->compiled.packed;
  const std::vector<NodePrecision>* precisions =
      canonical == node_precision_of_ ? &node_precision_ : nullptr;
  GraphPrecisions named;
  if (!named_precisions_.empty()) {
    named = precisions_of(*canonical, named_precisions_, precision_, nullptr);
    precisions = &named[canonical.get()];
  }
  PFRT_ASSIGN(auto compiled, CompiledGraph::create(canonical, with,
                                                   {.fallback = fallback_,
                                                    .rules = rules_,
                                                    .apart = preparation_->config().level == "none",
                                                    .assign = assign_,
                                                    .precision = precision_,
                                                    .node_precision = precisions,
                                                    .body_precision = &named}));
  return planned(std::move(compiled));
} catch (const std::bad_alloc&) {
  return error(Code::kOUT_OF_MEMORY, "planning graph '", optimised.graph->name,
               "': no memory left");
}

Result<CompileServices> Session::services(std::vector<Candidate> candidates, const Graph& graph,
                                          const Progress& progress) const {
  PFRT_TRY(add_client_operators(graph.operators, logger_, candidates, max_pixels_));
  return CompileServices{std::move(candidates), packed_, logger_, progress};
}

Status Session::choose_precisions(const std::shared_ptr<const Graph>& graph) {
  PFRT_ASSIGN(CompileServices own, services(provider_set_->candidates(), *graph, progress_));
  PrecisionSearch search(
      {std::move(own), &preparation_->config().samples, sample_source_.get(), max_error_});
  PFRT_ASSIGN(PrecisionChoice choice, search.choose(graph));
  node_precision_ = std::move(choice.nodes);
  if (!node_precision_.empty()) node_precision_of_ = graph;
  pass_notes_.insert(pass_notes_.end(), choice.notes.begin(), choice.notes.end());
  return {};
}

Result<Session::Planned> Session::planned(std::unique_ptr<CompiledGraph> graph) const {
  Planned out{std::move(graph), {}};
  for (ValueId id : out.graph->inputs()) {
    const std::string& name = out.graph->graph().at(id).name;
    const auto port = std::ranges::find(inputs_, name, &PortInfo::name);
    if (port == inputs_.end())
      return error(Code::kINTERNAL, "planning graph '", out.graph->graph().name, "': its input '",
                   name, "' is none of the model's");
    out.order.push_back(static_cast<size_t>(port - inputs_.begin()));
  }
  return out;
}

Session::Variant Session::variant_of(const std::vector<ValuePtr>& inputs, bool untied) const {
  Variant out{{}, untied, {}};
  if (inputs.size() == required_inputs_) return out;
  bool any = false;
  for (size_t i = required_inputs_; i < inputs.size(); ++i) any = any || inputs[i];
  for (size_t i = required_inputs_; any && i < inputs.size(); ++i)
    out.fed.push_back(inputs[i] != nullptr);
  return out;
}

Result<std::shared_ptr<const Session::Planned>> Session::plan_for(
    const std::shared_ptr<Plans>& plans, const Variant& variant,
    const std::vector<Status>& refusals, const RunControl& control) const {
  if (variant.is_main()) return std::shared_ptr<const Planned>(plans, &plans->main);
  const Progress progress = progress_of(control);
  return plans->variants.get(
      variant, [&] { return progress.stop(); },
      [&]() -> Result<std::shared_ptr<const Planned>> {
        PFRT_ASSIGN(Planned made, plan_variant(*plans, variant, refusals, progress));
        return std::make_shared<const Planned>(std::move(made));
      });
}

Result<Session::Planned> Session::plan_variant(const Plans& plans, const Variant& variant,
                                               const std::vector<Status>& refusals,
                                               const Progress& progress) const {
  std::vector<std::string> names, notes;  // notes are the same as the first time
  for (size_t i = 0; i < variant.fed.size(); ++i)
    if (variant.fed[i]) names.push_back(inputs_[required_inputs_ + i].name);
  std::vector<Candidate> candidates = plans.candidates;
  for (const Status& refusal : refusals)
    for (Candidate& candidate : candidates)
      if (candidate.provider && candidate.provider.get() == refusal.culprit())
        candidate = {candidate.name, nullptr, "not used for this request: " + refusal.message()};
  PFRT_ASSIGN(const auto optimised,
              preparation_->prepare({candidates, progress}, {names, variant.untied}, notes));
  return compile(*optimised, std::move(candidates), progress);
}

Result<std::shared_ptr<Session::Plans>> Session::plan(
    std::vector<Candidate> candidates, std::shared_ptr<const OptimisedGraph> optimised,
    const Progress& progress, PackedConstants* packed) const {
  auto plans = std::make_shared<Plans>();
  plans->candidates = std::move(candidates);
  plans->optimised = std::move(optimised);
  if (!plans->optimised) {
    std::vector<std::string> notes;  // as when the session was made
    PFRT_ASSIGN(
        plans->optimised,
        preparation_->prepare({plans->candidates, progress, sample_source_.get()}, {}, notes));
  }
  PFRT_ASSIGN(plans->main, compile(*plans->optimised, plans->candidates, progress, packed));
  return plans;
}

Result<std::shared_ptr<Session::Plans>> Session::plan_for_all(
    std::shared_ptr<const OptimisedGraph> optimised, const Progress& progress,
    PackedConstants* packed) {
  for (RecoveryAttempts tried;;) {
    if (packed) *packed = {};
    auto made =
        plan(provider_set_->candidates(), std::exchange(optimised, nullptr), progress, packed);
    if (made.ok()) return made;
    PFRT_TRY(prepare_retry(made.take_status(), tried, progress));
  }
}

}  // namespace pfrt
