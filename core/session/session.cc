// SPDX-License-Identifier: Apache-2.0
#include "core/session/session.h"

#include <algorithm>

#include "core/base/digest.h"
#include "core/base/os/floating_point.h"
#include "core/batch/batch_rows.h"
#include "core/exec/device_copy.h"
#include "core/ir/graph_counts.h"
#include "core/ir/verify.h"
#include "core/op/defs/resize.h"
#include "core/pass/rules/quantized/report.h"
#include "core/provider/client_operator.h"
#include "core/provider/fault.h"
#include "core/session/pass_options.h"
#include "core/session/profile_file.h"
#include "core/session/sessions.h"
#include "core/verify/precision_search.h"

namespace pfrt {

Result<std::pair<std::shared_ptr<Session>, Preparation::Config>> Session::begin(
    std::shared_ptr<const Model> model, const Options& options,
    const std::vector<std::string>& extra_outputs, Context context) {
  auto session = std::shared_ptr<Session>(new Session);
  session->keep_ = std::move(context.keep);
  session->model_ = std::move(model);
  session->max_threads_ = context.max_threads;
  session->executor_ = std::move(context.executor);
  session->packed_ = context.packed;
  session->all_ = context.all;
  session->own_logger_ = std::make_unique<Logger>(context.logger);
  session->logger_ = session->own_logger_.get();
  session->provider_set_ =
      std::make_unique<ProviderSet>(std::move(context.providers), context.devices, context.logger);
  PFRT_TRY(session->take_options(options));
  PFRT_TRY(session->open_providers());
  session->list_inputs();

  Preparation::Config prepare;
  prepare.level = options.get(session_option::kOptimizationLevel);
  prepare.verbose = options.get(session_option::kVerboseOptimization);
  prepare.skip_passes = options.get(session_option::kSkipPasses);
  prepare.verify = options.get(session_option::kVerify) == "on";
  prepare.extra_outputs = extra_outputs;
  prepare.samples = std::move(context.samples);
  prepare.operators = std::move(context.operators);
  for (auto& pass : context.passes)
    if (pass->level <= level_number(prepare.level)) prepare.passes.push_back(std::move(pass));
  session->cache_ = std::move(context.cache);
  PFRT_TRY(session->take_tuning(options));
  return std::pair(std::move(session), std::move(prepare));
}

Result<std::string> Session::key(std::shared_ptr<const Model> model, const Options& options,
                                 Context context) {
  PFRT_ASSIGN(auto begun, begin(std::move(model), options, {}, std::move(context)));
  std::string key = begun.first->cache_key(options, begun.second);
  if (key.empty())
    return error(Code::kUNSUPPORTED, "making a cache's key: such a session is ",
                 begun.first->cache_note_);
  return key;
}

Result<std::shared_ptr<Session>> Session::create(std::shared_ptr<const Model> model,
                                                 const Options& options,
                                                 const std::vector<std::string>& extra_outputs,
                                                 Context context) {
  const uint64_t start = os::monotonic_ns();
  PFRT_ASSIGN(auto begun, begin(std::move(model), options, extra_outputs, std::move(context)));
  auto& [session, prepare] = begun;
  if (options.get(session_option::kEnableProfiling))
    session->open_profile(options.get(session_option::kProfileFilePrefix), start);
  PFRT_TRY(session->make_plans(std::move(prepare), options));
  session->list_outputs();
  PFRT_TRY(session->model_->intact(true));
  if (session->profile_) {
    session->profile_->add(Profile::Kind::kStage, start, os::monotonic_ns(),
                           session->profile_->name("session_initialization"));
    session->open_profile_.store(session->profile_.get(), std::memory_order_release);
    session->write_at_end_ = options.is_set(session_option::kProfileFilePrefix);
  }
  if (session->all_) session->all_->add(session);
  session->enter(PFRT_PHASE_READY);
  session->log_creation(start);
  return session;
}

void Session::open_profile(const std::string& prefix, uint64_t started_ns) {
  static std::atomic<uint64_t> last_number{0};
  profile_ = std::make_unique<Profile>();
  profile_prefix_ = prefix;
  profile_number_ = last_number.fetch_add(1, std::memory_order_relaxed) + 1;
  progress_.set_profile(profile_.get());
  const Progress::Stages load = model_->take_load_stages();
  profile_->started_before(load[0].ns ? load[0].ns : started_ns);
  uint64_t end_ns = 0;
  for (size_t i = 1; i < load.size() && load[i].ns; ++i) {
    end_ns = load[i].ns;
    profile_->add(Profile::Kind::kStage, load[i - 1].ns, end_ns, profile_->name(load[i - 1].name));
  }
  if (end_ns)
    profile_->add(Profile::Kind::kStage, load[0].ns, end_ns, profile_->name("model_loading"));
}

Result<std::string_view> Session::end_profiling() {
  const std::lock_guard lock(profile_mutex_);
  if (profile_ && profile_path_.empty()) {
    std::string path = pfrt::profile_path(profile_prefix_, profile_number_);
    Status written = write_profile(*profile_,
                                   {.graph = model_->face().name,
                                    .session = profile_number_,
                                    .parameter_bytes = model_->info().parameter_bytes},
                                   path);
    if (!written.ok()) return written.prepend("ending the session's profile");
    open_profile_.store(nullptr, std::memory_order_release);
    profile_path_ = std::move(path);
  }
  return std::string_view(profile_path_);
}

// No run is under way.
Session::~Session() {
  if (all_) all_->forget(this);
  if (logger_ && model_) enter(plans_ ? PFRT_PHASE_CLEANUP : PFRT_PHASE_INIT_ERROR);
  if (!write_at_end_) return;
  try {
    if (auto written = end_profiling(); !written.ok())
      logger_->log(PFRT_LOG_ERROR, written.status().message());
  } catch (const std::bad_alloc&) {  // there is no memory to say it with either
  }
}

Status Session::take_options(const Options& options) {
  num_threads_ =
      static_cast<uint32_t>(std::min<int64_t>(options.get(session_option::kNumThreads), 1024));
  PFRT_TRY(check_pass_names(options.get(session_option::kSkipPasses), "creating a session"));
  progress_ = options.progress();
  if (options.is_set(session_option::kLogLevel))
    own_logger_->set_level(log_level_from(options.get(session_option::kLogLevel)));
  fallback_ = options.get(session_option::kFallback) == "on";
  halve_batch_ = fallback_ && options.get(session_option::kHalveBatch) == "on";
  strict_names_ = options.get(session_option::kStrictDimensionNames);
  assign_ =
      options.get(session_option::kAssign) == "priority" ? AssignBy::kPriority : AssignBy::kCost;
  const int64_t reopen_ms = options.get(session_option::kDeviceReopenMs);
  if (reopen_ms > INT32_MAX)
    return error(Code::kINVALID_ARGUMENT, "creating a session: session.device_reopen_ms ",
                 reopen_ms, " is more than ", INT32_MAX, "; 0 = once in the session's life");
  provider_set_->set_reopen_after(static_cast<uint64_t>(reopen_ms) * 1'000'000);
  precision_ = precision_hint(options.get(session_option::kPrecision));
  if (options.get(session_option::kDeterministic) == "batch") {
    if (options.get(session_option::kPrecision) == "auto")
      return error(Code::kINVALID_ARGUMENT,
                   "creating a session: deterministic 'batch' takes plain products, so that "
                   "precision 'auto' has none to choose; give one of the two");
    precision_ |= PFRT_COMPILE_BATCH;
  }
  PFRT_ASSIGN(named_precisions_, named_precisions(options.get(session_option::kNodePrecision)));
  if (!named_precisions_.empty() && options.get(session_option::kPrecision) == "auto")
    return error(Code::kINVALID_ARGUMENT,
                 "creating a session: precision 'auto' chooses for each node, and node_precision "
                 "says it for some; give one of the two");
  max_error_ = options.get(session_option::kMaxError);
  if (!(max_error_ >= 0))
    return error(Code::kINVALID_ARGUMENT, "creating a session: max_error ", max_error_,
                 " is no error; give 0 or more, such as 0.001");
  if (options.is_set(session_option::kMaxError) &&
      options.get(session_option::kPrecision) != "auto")
    return error(Code::kINVALID_ARGUMENT,
                 "creating a session: max_error is of precision 'auto', "
                 "but precision is '",
                 options.get(session_option::kPrecision), "'");
  if (options.get(session_option::kImageMaxPixels) < 1)
    return error(Code::kINVALID_ARGUMENT, "creating a session: image.max_pixels is ",
                 options.get(session_option::kImageMaxPixels),
                 "; give a number of pixels, 1 at least");
  max_pixels_ = static_cast<uint64_t>(options.get(session_option::kImageMaxPixels));
  rules_.concurrent_steps = options.get(session_option::kExecutionMode) == "parallel";
  rules_.reuse = options.get(session_option::kEnableMemReuse);
  rules_.keep_blocks = options.get(session_option::kEnableMemPattern);
  env_allocators_ = options.get(session_option::kUseEnvAllocators);
  return {};
}

// Lists the inputs; those that must be fed come first.
void Session::list_inputs() {
  const Graph& g = model_->face();
  for (const bool constant : {false, true}) {
    for (ValueId id : g.inputs)
      if ((g.at(id).constant != nullptr) == constant) inputs_.push_back(port_info(g, id));
    if (!constant) required_inputs_ = inputs_.size();
  }
}

void Session::list_outputs() {
  const Graph& g = model_->face();
  const Graph& planned = plans_->main.graph->graph();
  for (size_t i = 0; i < planned.outputs.size(); ++i)
    outputs_.push_back(i < g.outputs.size()
                           ? port_info(planned, planned.outputs[i], g, g.outputs[i])
                           : port_info(planned, planned.outputs[i]));
}

Status Session::make_plans(Preparation::Config config, const Options& options) {
  Status status = check_samples(inputs_, required_inputs_, *model_->face().symbols, config.samples);
  if (!status.ok()) return std::move(status.prepend("creating a session"));
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
    PFRT_ASSIGN(optimised,
                preparation_->prepare({provider_set_->candidates(), progress_}, {}, pass_notes_));
    if (options.get(session_option::kPrecision) == "auto") {
      const ProfileSpan span(progress_.profile(), "choose precisions");
      PFRT_TRY(choose_precisions(optimised->graph));
    }
  }
  PFRT_TRY(check_batch_of(*optimised->graph));
  PFRT_TRY(check_named_precisions(*optimised->graph));
  PFRT_ASSIGN(plans_, plan_for_all(std::move(optimised), progress_, keep ? &packed : nullptr));
  PFRT_TRY(progress_.stop());
  if (keep) keep_plans(packed);
  progress_ = Progress();
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
  if (config.verify || !config.samples.empty()) return not_for("it depends on samples of inputs");
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

std::shared_ptr<const Model::Optimised> Session::find_stored() {
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
  auto optimised = std::make_shared<Model::Optimised>();
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
  const Model::Optimised& optimised = *plans_->optimised;
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
  std::vector<std::string> names;
  for (const NodeId id : graph.node_ids()) names.push_back(graph.node(id)->name);
  const std::string near = nearest_name(missing.front(), names);
  return error(Code::kNOT_FOUND, "creating a session: node_precision names '", missing.front(),
               "', but no node of that name or that makes a value of it is left after "
               "optimisation",
               near.empty() ? "; 'pfrt explain' lists the nodes" : "; did you mean '", near,
               near.empty() ? "" : "'?");
}

void Session::log_creation(uint64_t started_ns) const {
  if (!logger_->wants(PFRT_LOG_INFO)) return;
  std::string providers;
  for (const std::string& name : provider_names_)
    providers += (providers.empty() ? "" : ", ") + name;
  logger_->log(PFRT_LOG_INFO, "session of graph '", model_->face().name,
               "': ", model_->info().node_count, " nodes, ",
               count_nodes(plans_->main.graph->graph()), " after optimisation level ",
               preparation_->config().level, ", on ", providers, "; made in ",
               static_cast<double>(os::monotonic_ns() - started_ns) / 1e6, " ms");
}

Result<std::unique_ptr<CompiledGraph>> Session::compile(
    const std::shared_ptr<const Graph>& canonical, const Plans& plans, const Progress& progress,
    PackedConstants* packed) const try {
  PFRT_ASSIGN(CompileServices with, services(plans.candidates, *canonical, progress));
  with.statistics = statistics_;
  with.made = packed;
  with.tuning = tuning_.get();
  if (plans.optimised->stored && canonical == plans.optimised->graph)
    with.stored = &plans.optimised->stored->compiled.packed;
  const std::vector<NodePrecision>* precisions =
      canonical == node_precision_of_ ? &node_precision_ : nullptr;
  std::vector<NodePrecision> named;
  if (!named_precisions_.empty()) {
    named = precisions_of(*canonical, named_precisions_, precision_, nullptr);
    precisions = &named;
  }
  return CompiledGraph::create(canonical, with,
                               {.fallback = fallback_,
                                .rules = rules_,
                                .apart = preparation_->config().level == "none",
                                .assign = assign_,
                                .precision = precision_,
                                .node_precision = precisions});
} catch (const std::bad_alloc&) {
  return error(Code::kOUT_OF_MEMORY, "planning graph '", canonical->name, "': no memory left");
}

Result<CompileServices> Session::services(std::vector<Candidate> candidates, const Graph& graph,
                                          const Progress& progress) const {
  if (graph.operators) {
    PFRT_ASSIGN(auto opened,
                Provider::open(client_operator_provider(graph.operators, max_pixels_), logger_));
    candidates.push_back({opened->name(), opened, {}});
  }
  return CompileServices{std::move(candidates), packed_, logger_, progress};
}

Status Session::choose_precisions(const std::shared_ptr<const Graph>& graph) {
  PFRT_ASSIGN(CompileServices own, services(provider_set_->candidates(), *graph, progress_));
  PrecisionSearch search({std::move(own), &preparation_->config().samples, max_error_});
  PFRT_ASSIGN(PrecisionChoice choice, search.choose(graph));
  node_precision_ = std::move(choice.nodes);
  if (!node_precision_.empty()) node_precision_of_ = graph;
  pass_notes_.insert(pass_notes_.end(), choice.notes.begin(), choice.notes.end());
  return {};
}

uint32_t Session::width(int64_t asked, uint32_t available) const {
  uint32_t width = asked > 0 ? static_cast<uint32_t>(std::min<int64_t>(asked, 1024)) : num_threads_;
  if (width == 0) width = available ? available : os::usable_processors();
  if (available) width = std::min(width, available);
  return max_threads_ ? std::min(width, max_threads_) : width;
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

Result<std::shared_ptr<const Session::Planned>> Session::variant(
    const std::shared_ptr<Plans>& plans, const std::vector<ValuePtr>& inputs, bool untied,
    const RunControl& control) const {
  std::vector<bool> fed;
  std::vector<std::string> names;
  for (size_t i = required_inputs_; i < inputs.size(); ++i) {
    fed.push_back(inputs[i] != nullptr);
    if (inputs[i]) names.push_back(inputs_[i].name);
  }
  if (names.empty() && !untied) return std::shared_ptr<const Planned>(plans, &plans->main);
  fed.push_back(untied);
  Progress progress(control.cancelled, nullptr, nullptr);
  progress.set_deadline(control.deadline_ns);
  progress.set_profile(control.profile);
  return plans->variants.get(
      fed, [&] { return progress.stop(); },
      [&]() -> Result<std::shared_ptr<const Planned>> {
        std::vector<std::string> notes;  // the same as the first time
        PFRT_ASSIGN(const auto optimised,
                    preparation_->prepare({plans->candidates, progress}, {names, untied}, notes));
        PFRT_ASSIGN(auto compiled, compile(optimised->graph, *plans, progress));
        PFRT_ASSIGN(Planned made, planned(std::move(compiled)));
        return std::make_shared<const Planned>(std::move(made));
      });
}

Status Session::attempt(const std::shared_ptr<Plans>& plans, const std::vector<ValuePtr>& inputs,
                        bool untied, const std::vector<OutputRequest>& requests,
                        const RunControl& control, std::vector<ValuePtr>& outputs) const try {
  PFRT_ASSIGN(const std::shared_ptr<const Planned> with, variant(plans, inputs, untied, control));
  std::vector<ValuePtr> ordered;
  ordered.reserve(with->graph->values_at_once());
  for (const size_t at : with->order) ordered.push_back(inputs[at]);
  return run_whole(*with->graph, std::move(ordered), requests, control, outputs);
} catch (const std::bad_alloc&) {
  return error(Code::kOUT_OF_MEMORY, "running: no memory left");
}

Status Session::run(const std::vector<ValuePtr>& inputs, const std::vector<OutputRequest>& requests,
                    const RunControl& control, std::vector<ValuePtr>& outputs) {
  const uint64_t start = control.profile ? os::quick_ns() : 0;
  Status status = run_uncounted(inputs, requests, control, outputs);
  ++(status.ok() ? statistics_->runs : statistics_->failures);
  if (control.profile)
    control.profile->add(Profile::Kind::kRun, start, os::quick_ns(), control.tag, control.number,
                         control.width | static_cast<uint64_t>(status.code()) << 32);
  return status;
}

Status Session::run_uncounted(const std::vector<ValuePtr>& inputs,
                              const std::vector<OutputRequest>& requests, const RunControl& control,
                              std::vector<ValuePtr>& outputs) {
  PFRT_TRY(model_->intact(false));
  std::string differ;
  PFRT_TRY(check_inputs(inputs_, required_inputs_, *model_->face().symbols, inputs,
                        strict_names_ || control.whole ? nullptr : &differ));
  const bool untied = !differ.empty();
  if (untied)
    std::call_once(names_differ_, [&] {
      logger_->log(PFRT_LOG_WARNING, "running graph '", model_->face().name, "': ", differ,
                   "; such runs take a plan in which names tie nothing. The option "
                   "strict_dimension_names makes it an error");
    });
  // A run may also be on a thread that came through no ABI function.
  const FloatingPointScope floating_point;
  Status status = run_cured(inputs, untied, requests, control, outputs);
  if (status.code() == Code::kOUT_OF_MEMORY && halve_batch_ && !control.whole && !untied)
    status = run_in_parts(inputs, requests, control, outputs, std::move(status));
  if (status.ok()) {
    provider_set_->succeeded();
    forget_failure();
  } else if (status.code() == Code::kOUT_OF_MEMORY) {
    enter(PFRT_PHASE_FATAL_ERROR);
  }
  return status;
}

Status Session::run_cured(const std::vector<ValuePtr>& inputs, bool untied,
                          const std::vector<OutputRequest>& requests, const RunControl& control,
                          std::vector<ValuePtr>& outputs) {
  std::shared_ptr<Plans> all = current(), without_refuser;
  for (Cures tried;;) {
    const std::shared_ptr<Plans>& plans = without_refuser ? without_refuser : all;
    control.attempt_again();
    Status status = attempt(plans, inputs, untied, requests, control, outputs);
    const auto& stored = plans->optimised->stored;
    if (stored && stored->lost()) {
      outputs.clear();
      PFRT_TRY(leave_cache(all, control));
      without_refuser = nullptr;
      all = current();
      continue;
    }
    if (status.ok() || fault_of(status.code()) == Fault::kNone) return status;
    PFRT_TRY(model_->intact(true));  // no provider is at fault when the file reads as zeros
    outputs.clear();
    if (status.only_request() && fallback_) {
      PFRT_ASSIGN(without_refuser, without(*plans, status, control));
      continue;
    }
    status = recover(all, std::move(status), tried, control);
    if (!status.ok()) {
      const Fault fault = fault_of(status.code());
      if (fault != Fault::kNone && fault != Fault::kMemory) enter(PFRT_PHASE_FATAL_ERROR);
      return status;
    }
    without_refuser = nullptr;
    all = current();
  }
}

Result<std::shared_ptr<Provider>> Session::device_of(std::string_view name) const {
  const size_t only = name.empty() ? ProviderSet::kNobody : provider_set_->find(name);
  if (!name.empty() && only == ProviderSet::kNobody)
    return error(Code::kNOT_FOUND, "looking for device memory: the session has no provider '", name,
                 "'");
  for (size_t i = 0; i < provider_set_->size(); ++i) {
    if (only != ProviderSet::kNobody && only != i) continue;
    if (auto provider = provider_set_->provider(i); provider && provider->has_memory())
      return provider;
  }
  const bool failed =
      only != ProviderSet::kNobody && provider_set_->state(only).condition == PFRT_PROVIDER_FAILED;
  return error(failed ? Code::kPROVIDER : Code::kUNSUPPORTED, "looking for device memory: ",
               name.empty() ? "none of the session's providers in use" : std::string(name),
               failed ? " is not in use: " : " has no memory of its own",
               failed ? std::string(provider_set_->state(only).reason) : "");
}

Session::Explanation Session::explain() {
  Explanation out;
  const std::shared_ptr<Plans> plans = current();
  PlanReport plan;
  plans->main.graph->explain(plan);
  out.steps = std::move(plan.steps);
  out.counters = std::move(plan.counters);
  std::ranges::stable_sort(out.counters, {}, &CounterReport::first_row);
  uint64_t first = UINT64_MAX;
  for (const StepReport& step : out.steps)
    if (step.started_ns) first = std::min(first, step.started_ns);
  for (StepReport& step : out.steps)
    if (step.started_ns) step.started_ns -= first;
  const Preparation::Config& prepared = preparation_->config();
  out.notes.push_back(
      "optimisation level " + prepared.level +
      (prepared.passes.empty() ? "" : message(", ", prepared.passes.size(), " registered passes")));
  {
    const std::lock_guard lock(mutex_);
    if (!cache_note_.empty()) out.notes.push_back(cache_note_);
  }
  out.notes.insert(out.notes.end(), pass_notes_.begin(), pass_notes_.end());
  for (const PassReport& report : plans->optimised->reports) {
    std::string rules;
    for (const auto& [rule, count] : report.result.stats.rules)
      rules += message(rules.empty() ? ": " : ", ", rule, " ", count);
    out.notes.push_back(message(report.pass, ", ", report.nodes_before, " nodes before, ",
                                report.nodes_after, " after", rules));
    out.notes.insert(out.notes.end(), report.result.warnings.begin(), report.result.warnings.end());
  }
  if (std::string note = fractional_lengths(*plans->optimised->graph); !note.empty())
    out.notes.push_back(std::move(note));
  if (auto groups = quantized_groups(*plans->optimised->graph); groups.ok()) {
    const std::vector<std::string> lines = quantized_lines(*groups);
    out.notes.insert(out.notes.end(), lines.begin(), lines.end());
  }
  out.notes.insert(out.notes.end(), plan.faults.begin(), plan.faults.end());
  out.notes.push_back(memory_note(memory_report()));
  for (size_t i = 0; i < provider_set_->size(); ++i) {
    const ProviderSet::State state = provider_set_->state(i);
    if (state.failures == 0) continue;
    const char* now = state.condition == PFRT_PROVIDER_FAILED      ? " is not used: "
                      : state.condition == PFRT_PROVIDER_RECOVERED ? " has recovered from: "
                                                                   : " fails: ";
    out.notes.push_back(message(std::string(state.name), now, std::string(state.reason)));
  }
  return out;
}

}  // namespace pfrt
