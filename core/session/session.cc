// SPDX-License-Identifier: Apache-2.0
#include "core/session/session.h"

#include <algorithm>

#include "core/base/os/floating_point.h"
#include "core/exec/device_copy.h"
#include "core/ir/graph_counts.h"
#include "core/op/defs/resize.h"
#include "core/pass/rules/quantized/report.h"
#include "core/provider/fault.h"
#include "core/session/pass_options.h"
#include "core/session/sessions.h"

namespace pfrt {
namespace {

constexpr double kOpenUntil = 0.05;  // of the progress of creating a session

}  // namespace

Result<std::pair<std::shared_ptr<Session>, Preparation::Config>> Session::begin(
    std::shared_ptr<const Model> model, const Options& options,
    const std::vector<std::string>& extra_outputs, Context context, Progress progress) {
  auto session = std::shared_ptr<Session>(new Session);
  session->keep_ = std::move(context.keep);
  session->model_ = std::move(model);
  session->max_threads_ = context.max_threads;
  session->executor_ = std::move(context.executor);
  session->packed_ = context.packed;
  session->all_ = context.all;
  session->runs_ = context.runs;
  session->own_logger_ = std::make_unique<Logger>(context.logger);
  session->logger_ = session->own_logger_.get();
  session->keep_log_ = std::move(context.keep_log);
  session->takes_log_ = context.log != nullptr;
  if (context.log) session->own_logger_->set_sink(context.log, context.log_user);
  const Logger::Scope log(session->log_taker());
  session->progress_ = progress;
  session->sample_source_ = std::move(context.sample_source);
  session->provider_set_ =
      std::make_unique<ProviderSet>(std::move(context.providers), *context.devices, context.logger);
  PFRT_TRY(session->take_options(options));
  PFRT_TRY(session->progress_.stage("open providers", kOpenUntil));
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
  PFRT_ASSIGN(auto begun,
              begin(std::move(model), options, {}, std::move(context), options.progress().quiet()));
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
  PFRT_ASSIGN(auto begun, begin(std::move(model), options, extra_outputs, std::move(context),
                                options.progress()));
  auto& [session, prepare] = begun;
  const Logger::Scope log(session->log_taker());
  if (options.get(session_option::kEnableProfiling))
    session->progress_.set_profile(session->profile_.begin(
        options.get(session_option::kProfileFilePrefix), *session->model_, start));
  PFRT_TRY(session->make_plans(std::move(prepare), options));
  session->list_outputs();
  PFRT_TRY(session->model_->intact(true));
  session->profile_.open(start, options.is_set(session_option::kProfileFilePrefix));
  if (session->all_) session->all_->add(session);
  session->enter(PFRT_PHASE_READY);
  session->log_creation(start);
  // It is ready, whoever wants it to stop now.
  (void)session->progress_.stage("done", 1.0).ok();
  (void)session->progress_.at(1).ok();
  session->progress_ = Progress();
  return session;
}

// No run is under way.
Session::~Session() {
  if (all_) all_->forget(this);
  if (logger_ && model_) enter(plans_ ? PFRT_PHASE_CLEANUP : PFRT_PHASE_INIT_ERROR);
  if (!profile_.write_at_end()) return;
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
  if (options.is_set(session_option::kLogLevel))
    own_logger_->set_level(log_level_from(options.get(session_option::kLogLevel)));
  fallback_ = options.get(session_option::kFallback) == "on";
  halve_batch_ = fallback_ && options.get(session_option::kHalveBatch) == "on";
  strict_names_ = options.get(session_option::kStrictDimensionNames);
  flush_denormals_ = options.get(session_option::kSetDenormalAsZero);
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
  const Graph& g = model_->signature();
  for (const bool constant : {false, true}) {
    for (ValueId id : g.inputs)
      if ((g.at(id).constant != nullptr) == constant) inputs_.push_back(port_info(g, id));
    if (!constant) required_inputs_ = inputs_.size();
  }
}

void Session::list_outputs() {
  const Graph& g = model_->signature();
  const Graph& planned = plans_->main.graph->graph();
  for (size_t i = 0; i < planned.outputs.size(); ++i) {
    const PortInfo& port = outputs_.emplace_back(
        i < g.outputs.size() ? port_info(planned, planned.outputs[i], g, g.outputs[i])
                             : port_info(planned, planned.outputs[i]));
    const bool fixed = port.type.has_shape && port.type.dtype != PFRT_DTYPE_UNSET &&
                       std::ranges::all_of(port.dims, [](int64_t d) { return d >= 0; });
    output_bytes_.push_back(
        fixed ? std::optional(tensor_bytes(port.type.dtype,
                                           element_count(port.dims.data(), port.dims.size())))
              : std::nullopt);
  }
}

void Session::log_creation(uint64_t started_ns) const {
  if (!logger_->wants(PFRT_LOG_INFO)) return;
  std::string providers;
  for (const Candidate& each : provider_set_->candidates())
    if (each.provider) providers += (providers.empty() ? "" : ", ") + each.name;
  logger_->log(PFRT_LOG_INFO, "session of graph '", model_->signature().name,
               "': ", model_->info().node_count, " nodes, ",
               count_nodes(plans_->main.graph->graph()), " after optimisation level ",
               preparation_->config().level, ", on ", providers, "; made in ",
               static_cast<double>(os::monotonic_ns() - started_ns) / 1e6, " ms");
}

uint32_t Session::width(int64_t asked, uint32_t available) const {
  uint32_t width = asked > 0 ? static_cast<uint32_t>(std::min<int64_t>(asked, 1024)) : num_threads_;
  if (width == 0) width = available ? available : os::usable_processors();
  if (available) width = std::min(width, available);
  return max_threads_ ? std::min(width, max_threads_) : width;
}

std::shared_ptr<const Graph> Session::planned_graph() const { return current()->optimised->graph; }

Status Session::attempt(const std::shared_ptr<Plans>& plans, const Variant& variant,
                        const std::vector<Status>& refusals, const std::vector<ValuePtr>& inputs,
                        const std::vector<OutputRequest>& requests, const RunControl& control,
                        std::vector<ValuePtr>& outputs) const try {
  PFRT_ASSIGN(const std::shared_ptr<const Planned> with,
              plan_for(plans, variant, refusals, control));
  std::vector<ValuePtr> ordered;
  ordered.reserve(with->graph->values_at_once());
  for (const size_t at : with->order) ordered.push_back(inputs[at]);
  return run_and_copy_back(*with->graph, std::move(ordered), requests, control, outputs);
} catch (const std::bad_alloc&) {
  return error(Code::kOUT_OF_MEMORY, "running: no memory left");
}

Status Session::execute(const std::vector<ValuePtr>& inputs,
                        const std::vector<OutputRequest>& requests, const RunControl& control,
                        std::vector<ValuePtr>& outputs) {
  const Logger::Scope log(log_taker());
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
  PFRT_TRY(check_inputs(inputs_, required_inputs_, *model_->signature().symbols, inputs,
                        strict_names_ || control.unsplit ? nullptr : &differ));
  const bool untied = !differ.empty();
  if (untied)
    std::call_once(names_differ_, [&] {
      logger_->log(PFRT_LOG_WARNING, "running graph '", model_->signature().name, "': ", differ,
                   "; such runs take a plan in which names tie nothing. The option "
                   "strict_dimension_names makes it an error");
    });
  // A run may also be on a thread that came through no ABI function.
  const FloatingPointScope floating_point(flush_denormals_ ? os::kFlushingFpControl
                                                           : os::kDefaultFpControl);
  Status status = run_with_recovery(inputs, untied, requests, control, outputs);
  if (status.code() == Code::kOUT_OF_MEMORY && halve_batch_ && !control.unsplit && !untied)
    status = run_in_parts(inputs, requests, control, outputs, std::move(status));
  if (status.ok()) {
    provider_set_->succeeded();
    forget_failure();
  } else if (status.code() == Code::kOUT_OF_MEMORY) {
    enter(PFRT_PHASE_FATAL_ERROR);
  }
  return status;
}

namespace {

Status not_tried_again(Status failure) {
  return std::move(failure.prepend(
      "running with an output in the memory of an input, which may be overwritten now, so that "
      "the run is not tried again"));
}

}  // namespace

Status Session::run_with_recovery(const std::vector<ValuePtr>& inputs, bool untied,
                                  const std::vector<OutputRequest>& requests,
                                  const RunControl& control, std::vector<ValuePtr>& outputs) {
  Variant variant = variant_of(inputs, untied);
  std::vector<Status> refusals;
  RecoveryAttempts tried;
  for (std::shared_ptr<Plans> plans = current();; plans = current()) {
    control.attempt_again();
    Status status = attempt(plans, variant, refusals, inputs, requests, control, outputs);
    while (status.only_request() && fallback_ && !control.overwrote_input) {
      outputs.clear();
      PFRT_TRY(leave_out(plans, std::move(status), variant, refusals, control));
      control.attempt_again();
      status = attempt(plans, variant, refusals, inputs, requests, control, outputs);
    }
    const auto& stored = plans->optimised->stored;
    const bool lost = stored && stored->lost();
    if (!lost && (status.ok() || fault_of(status.code()) == Fault::kNone)) return status;
    outputs.clear();
    if (lost) {
      PFRT_TRY(leave_cache(plans, control));
      if (control.overwrote_input)
        return not_tried_again(error(Code::kDATA_LOSS, "running graph '", model_->signature().name,
                                     "': the session's entry of the cache was lost meanwhile"));
    } else {
      PFRT_TRY(model_->intact(true));  // no provider is at fault when the file reads as zeros
      if (control.overwrote_input && status.only_request())
        return not_tried_again(std::move(status));
      Status failure = control.overwrote_input ? status : Status();
      status = recover(plans, std::move(status), tried, control);
      // The next run has what recovery found, but this one has lost its input.
      if (!failure.ok()) return not_tried_again(std::move(failure));
      if (!status.ok()) {
        const Fault fault = fault_of(status.code());
        if (fault != Fault::kNone && fault != Fault::kMemory) enter(PFRT_PHASE_FATAL_ERROR);
        return status;
      }
    }
    variant.refused.clear();
    refusals.clear();
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

bool Session::uses(const Device& device) const {
  for (size_t i = 0; i < provider_set_->size(); ++i)
    if (provider_set_->provider(i).get() == &device) return true;
  return false;
}

Session::Explanation Session::explain() {
  const Logger::Scope log(log_taker());
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
