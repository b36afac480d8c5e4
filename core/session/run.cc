// SPDX-License-Identifier: Apache-2.0
#include "core/session/run.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <utility>

#include "core/base/os/floating_point.h"
#include "core/base/os/fork.h"
#include "core/exec/run/threads.h"

namespace pfrt {
namespace {

// Whether a result can be written to the memory of |place|. |kind|, |dtype| and |bytes| are the
// result's, as far as they are known.
Status check_memory(std::string_view output, pfrt_value_kind kind, pfrt_dtype dtype,
                    std::optional<uint64_t> bytes, const OutputRequest& place) {
  if ((kind != PFRT_VALUE_UNSET && kind != PFRT_VALUE_TENSOR) || dtype == PFRT_DTYPE_STRING)
    return error(Code::kINVALID_ARGUMENT, "running: output '", output,
                 "' is not a tensor of numbers, so it cannot be written to the caller's memory; "
                 "let the run allocate it");
  if (place.dtype != PFRT_DTYPE_UNSET && dtype != PFRT_DTYPE_UNSET && place.dtype != dtype)
    return error(Code::kDTYPE_MISMATCH, "running: memory for output '", output, "' is for ",
                 dtype_name(place.dtype), ", the result is ", dtype_name(dtype));
  if (bytes && *bytes != place.bytes)
    return error(Code::kSHAPE_MISMATCH, "running: memory for output '", output, "' has ",
                 place.bytes, " bytes, the result has ", *bytes);
  return {};
}

}  // namespace

Run::Run(Session& session, RunSettings&& settings)
    : session_(session), settings_(std::move(settings)), own_(session.runs().replacements()) {
  memory_.budget = session_.runs().budget();
  if (settings_.memory_limit)
    memory_.budget = budget_of("the run", settings_.memory_limit, memory_.budget);
  if (own_) {
    if (session_.env_allocators()) memory_.allocator = own_->allocator;
    memory_.planner = own_->planner;
  }
  const bool log = settings_.log_level == PFRT_LOG_UNSET ? session_.logger().wants(PFRT_LOG_DEBUG)
                                                         : settings_.log_level == PFRT_LOG_DEBUG;
  if (log) trace_ = settings_.tag.empty() ? "run" : message("run '", settings_.tag, "'");
  control_.cancelled = settings_.cancel;
  control_.deadline_ns = settings_.deadline_ns;
  if (own_) control_.executor = own_->threads().get();
  control_.width =
      session_.width(settings_.threads, control_.executor ? control_.executor->width() : 0);
  control_.profile = session_.profile();
  if (!control_.profile) return;
  control_.number = control_.profile->begin_run();
  if (!settings_.tag.empty()) control_.tag = control_.profile->name(settings_.tag);
}

Status Run::take(std::vector<ValuePtr>&& inputs, std::vector<OutputRequest>&& outputs) {
  const std::vector<PortInfo>& ports = session_.inputs();
  if (inputs.size() != ports.size() || outputs.size() != session_.outputs().size())
    return error(Code::kINPUT, "running: ", inputs.size(), " inputs and ", outputs.size(),
                 " outputs were given, the session has ", ports.size(), " and ",
                 session_.outputs().size());
  inputs_ = std::move(inputs);
  outputs_ = std::move(outputs);
  if (std::ranges::any_of(outputs_, [](const OutputRequest& o) { return o.wanted && o.given; }))
    PFRT_TRY(check_outputs());
  if (settings_.keeps_state && !settings_.state)
    return error(Code::kINVALID_ARGUMENT,
                 "running: it is to keep the state, and there is none; give it one");
  if (!settings_.state) return {};
  PFRT_TRY(settings_.state->check_run(session_, inputs_, outputs_, settings_.keeps_state));
  turn_ = settings_.state->turns().join(settings_.keeps_state ? Turns::Use::kShared
                                                              : Turns::Use::kAlone);
  return {};
}

// Checks memory that was given for outputs, against what they will be and against each other.
Status Run::check_outputs() {
  std::array<Range, 16> near;
  std::unique_ptr<Range[]> far;
  const size_t most = inputs_.size() + outputs_.size();
  if (most > near.size()) far = std::make_unique<Range[]>(most);
  Range* const ranges = far ? far.get() : near.data();
  size_t count = 0;
  bool fed = false;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (!inputs_[i]) continue;
    fed = fed || session_.inputs()[i].has_initializer;
    const Tensor& t = inputs_[i]->tensor;
    const uint64_t bytes = t.valid() ? t.bytes() : 0;
    if (bytes != 0) ranges[count++] = Range::of(t.data(), bytes, t.device());
  }
  const size_t inputs = count;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (!outputs_[i].wanted || !outputs_[i].given) continue;
    PFRT_TRY(check_output(i, !fed, {ranges, count}, inputs, ranges[count]));
    count += outputs_[i].bytes != 0;
  }
  return {};
}

// |as_planned|: no initializer is fed, so that outputs have the dimensions they are listed with.
// The first |inputs| of |ranges| are those of inputs.
Status Run::check_output(size_t index, bool as_planned, std::span<const Range> ranges,
                         size_t inputs, Range& own) {
  OutputRequest& place = outputs_[index];
  const PortInfo& port = session_.outputs()[index];
  PFRT_TRY(check_memory(port.name, port.type.kind, port.type.dtype,
                        as_planned ? session_.output_bytes(index) : std::nullopt, place));
  if (place.bytes == 0) return {};
  own = Range::of(place.data, place.bytes, place.device());
  size_t touched = 0, same = 0;
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (!own.overlaps(ranges[i])) continue;
    ++touched;
    same += i < inputs && own.begin == ranges[i].begin && own.end == ranges[i].end;
  }
  place.in_place = place.in_place && touched == 1 && same == 1;
  if (touched != 0 && !place.in_place)
    return error(Code::kINVALID_ARGUMENT, "running: memory for output '", port.name,
                 "' overlaps that of an input or another output");
  return {};
}

Status Run::carry_out(std::vector<ValuePtr>& results) {
  results.clear();
  if (turn_)
    PFRT_TRY(settings_.state->turns().wait(turn_, control_.stopper(), "running with a state"));
  const RunUnderWay under_way;
  if (settings_.threads <= 0) control_.width = under_way.share(control_.width);
  Status status = settings_.state ? run_with_state(results) : [&] {
    const MemoryScope scope(&memory_);
    Status computed = compute(results);
    return computed.ok() ? place(results) : computed;
  }();
  if (!status.ok()) {
    results.clear();
    return status;
  }
  session_.runs().after_run();
  return {};
}

Status Run::run_with_state(std::vector<ValuePtr>& results) {
  struct Leave {
    State::Turn& turn;
    ~Leave() { turn.leave(); }
  } const leave{turn_};
  control_.unsplit = true;
  return settings_.keeps_state ? read_state(results) : continue_state(results);
}

Status Run::read_state(std::vector<ValuePtr>& results) {
  const MemoryScope scope(&memory_);
  PFRT_TRY(settings_.state->lend(inputs_));
  // The state's values are inputs too, which no output may be written to.
  if (std::ranges::any_of(outputs_, [](const OutputRequest& o) { return o.wanted && o.given; }))
    PFRT_TRY(check_outputs());
  Status computed = compute(results);
  inputs_.clear();  // the next run may write where they are
  return computed.ok() ? place(results) : computed;
}

// The state has the run's values once the caller has the results.
Status Run::continue_state(std::vector<ValuePtr>& results) {
  State& state = *settings_.state;
  const std::vector<OutputRequest> asked = outputs_;
  const std::vector<ValuePtr> fed = inputs_;
  const MemorySource outlives_the_run{memory_.allocator, session_.runs().budget(), memory_.planner};
  {
    const MemoryScope scope(&outlives_the_run);
    PFRT_TRY(state.begin(inputs_, outputs_));
  }
  const MemoryScope scope(&memory_);
  PFRT_TRY(compute(results));
  inputs_.clear();
  std::vector<ValuePtr> next = results;
  {
    const MemoryScope lasting(&outlives_the_run);
    PFRT_TRY(state.own_outputs(fed, next));
  }
  outputs_ = asked;
  PFRT_TRY(place(results));
  state.end(next);
  return {};
}

// Computes the outputs, and shows the extra ones to the observer.
Status Run::compute(std::vector<ValuePtr>& results) {
  if (!settings_.observer) return execute(outputs_, results);
  std::vector<OutputRequest> observed = outputs_;
  for (size_t i = session_.first_extra_output(); i < observed.size(); ++i) {
    observed[i].wanted = true;
    observed[i].on_device = false;
  }
  PFRT_TRY(execute(observed, results));
  for (size_t i = session_.first_extra_output(); i < results.size(); ++i)
    PFRT_TRY(settings_.observer(session_.outputs()[i].name, results[i]));
  return {};
}

// Runs the session, timed where the log is to have the time.
Status Run::execute(const std::vector<OutputRequest>& requests, std::vector<ValuePtr>& results) {
  if (trace_.empty()) return session_.execute(inputs_, requests, control_, results);
  const uint64_t start = os::monotonic_ns();
  Status status = session_.execute(inputs_, requests, control_, results);
  const double ms = static_cast<double>(os::monotonic_ns() - start) / 1e6;
  session_.logger().write(PFRT_LOG_DEBUG,
                          message(trace_, " on ", control_.width, " threads: ", ms, " ms",
                                  status.ok() ? "" : "; ", status.message()));
  return status;
}

// Brings the results to the places that were given, and others to memory that nobody shares.
Status Run::place(std::vector<ValuePtr>& results) {
  for (size_t i = 0; i < results.size(); ++i) {
    const OutputRequest& to = outputs_[i];
    if (!to.wanted) {
      results[i] = nullptr;
      continue;
    }
    if (!to.given) {
      // A result may be an input or a constant passed on: the caller gets bytes of its own.
      PFRT_ASSIGN(results[i], exclusive(std::move(results[i])));
      continue;
    }
    const Tensor& t = results[i]->tensor;
    const bool numbers = results[i]->kind == PFRT_VALUE_TENSOR && t.dtype != PFRT_DTYPE_STRING;
    PFRT_TRY(check_memory(session_.outputs()[i].name, results[i]->kind, t.dtype,
                          numbers ? std::optional(t.bytes()) : std::nullopt, to));
    if (t.data() != to.data && t.bytes()) std::memcpy(to.data, t.data(), t.bytes());
  }
  return session_.model()->intact(true);
}

Result<std::vector<ValuePtr>> Session::run(RunRequest request) {
  Run run(*this, std::move(request.settings));
  PFRT_TRY(run.take(std::move(request.inputs), std::move(request.outputs)));
  std::vector<ValuePtr> results;
  PFRT_TRY(run.carry_out(results));
  return results;
}

// ---- asynchronous runs ----

namespace {

// All that a started run needs until its end is known.
struct Started {
  std::shared_ptr<Session> session;
  std::unique_ptr<Run> run;
  std::function<void(Status, std::vector<ValuePtr>)> done;
  Status no_memory = error(Code::kOUT_OF_MEMORY, "running: no memory left");
  Profile* profile = nullptr;
  uint32_t number = 0;
  uint64_t asked_ns = 0;  // when the run was asked for, where it is profiled

  void end(Status status, std::vector<ValuePtr> results) {
    run = nullptr;
    done(std::move(status), std::move(results));
  }
};

// Runs as a Task.
void carry_out_started(void* self) {
  const std::unique_ptr<Started> started(static_cast<Started*>(self));
  if (started->profile)
    started->profile->add(Profile::Kind::kWait, started->asked_ns, os::monotonic_ns(), 0,
                          started->number);
  std::vector<ValuePtr> results;
  Status status;
  try {
    const os::ForkScope scope;
    const FloatingPointScope floating_point;
    status = started->run->carry_out(results);
  } catch (const std::bad_alloc&) {
    results.clear();
    status = std::move(started->no_memory);
  }
  started->end(std::move(status), std::move(results));
}

// Gives a run that waits in |queue| to a thread. An error means that it waits no longer.
Status hand_over(const Started* started, Executor* executor, RunQueue& queue) {
  // A thread that starts serves the first waiting run, which keeps the queue alive.
  const auto serve = [](void* all) { static_cast<RunQueue*>(all)->serve(); };
  Status submitted = executor ? executor->submit(serve, &queue) : submit(serve, &queue);
  if (submitted.ok()) return {};
  if (queue.remove(started)) return submitted;
  // Another run's thread has taken this run, so this thread serves a waiting one in return.
  queue.serve();
  return {};
}

}  // namespace

Status start(std::unique_ptr<Run> run,
             std::function<void(Status status, std::vector<ValuePtr> results)> done) {
  Run& asked = *run;
  // The run may be over, and its end may have released everything, as soon as it waits.
  const std::shared_ptr<Session> session = asked.session().shared_from_this();
  const std::shared_ptr<const Replacements> own = asked.own_;
  Executor* const executor = asked.control_.executor;
  RunQueue& queue = session->runs().waiting();
  const int64_t priority = asked.settings_.priority;
  auto started = std::make_unique<Started>();
  started->session = session;
  started->run = std::move(run);
  started->done = std::move(done);
  started->profile = asked.control_.profile;
  started->number = asked.control_.number;
  if (started->profile) started->asked_ns = os::monotonic_ns();
  Started* const waits = started.get();
  if (asked.turn_) {
    PFRT_TRY(queue.reserve());
    // Runs on the thread that leaves the turn to this run.
    const auto at_turn = [waits, executor, own, priority, &queue]() noexcept {
      Status status;
      try {
        const std::shared_ptr<Session> keeps_queue = waits->session;
        queue.add_reserved(priority, &carry_out_started, waits);
        status = hand_over(waits, executor, queue);
        if (status.ok()) return;
      } catch (const std::bad_alloc&) {
        status = std::move(waits->no_memory);
      }
      const std::unique_ptr<Started> ended(waits);
      ended->end(std::move(status), {});
    };
    bool later = false;
    try {
      later = asked.settings_.state->turns().call_later(asked.turn_, at_turn);
    } catch (const std::bad_alloc&) {
      queue.give_up_reserved();
      throw;
    }
    if (later) {
      static_cast<void>(started.release());  // carry_out_started deletes it
      return {};
    }
    queue.add_reserved(priority, &carry_out_started, waits);
  } else {
    PFRT_TRY(queue.add(priority, &carry_out_started, waits));
  }
  static_cast<void>(started.release());  // carry_out_started deletes it
  Status status = hand_over(waits, executor, queue);
  if (!status.ok()) delete waits;
  return status;
}

}  // namespace pfrt
