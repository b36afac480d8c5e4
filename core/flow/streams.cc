// SPDX-License-Identifier: Apache-2.0
#include "core/flow/streams.h"

#include <algorithm>
#include <chrono>
#include <new>

#include "core/base/os/cpu.h"
#include "core/base/os/fork.h"
#include "core/session/run.h"

namespace pfrt {
namespace {

constexpr std::string_view kSubmitting = "submitting a request";
// The interval at which flags of callers are looked at while their requests wait.
constexpr uint64_t kFlagsNs = 5'000'000;

Status range(std::string_view name, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return {};
  return error(Code::kINVALID_ARGUMENT, "making streams: ", name, " is ", value, "; it is ", least,
               " to ", most);
}

}  // namespace

// ---- making, starting, ending ----

Result<Streams::Config> Streams::config_of(const Options& o) {
  Config out;
  const int64_t streams = o.get(streams_option::kNumStreams);
  PFRT_TRY(range("num_streams", streams, 1, 256));
  out.streams = static_cast<uint32_t>(streams);
  const int64_t answerers = o.get(streams_option::kCallbackThreads);
  PFRT_TRY(range("callback_threads", answerers, 0, 256));
  out.answerers = static_cast<uint32_t>(answerers);
  const int64_t pending = o.get(streams_option::kMaxPending);
  PFRT_TRY(range("max_pending", pending, 1, int64_t{1} << 40));
  out.most_open = static_cast<uint64_t>(pending);
  out.overlap = o.get(streams_option::kEnablePipelining);
  out.profiling = o.get(streams_option::kEnableProfiling);
  return out;
}

Streams::Streams(std::shared_ptr<Session> session, Config config)
    : session_(std::move(session)),
      config_(config),
      streams_(config.streams),
      crew_(config.streams + config.answerers, *session_) {}

Streams::~Streams() {
  if (crew_.is_here() && !crew_.has_caller()) stop();
}

void Streams::end(std::shared_ptr<Streams> streams) {
  if (!streams->crew_.is_here()) {
    // A condition that threads of the parent wait for cannot be destroyed here.
    static_cast<void>(new std::shared_ptr<Streams>(std::move(streams)));
    return;
  }
  if (!streams->crew_.has_caller()) return;  // the destructor stops them
  Streams& own = *streams;
  own.stop();
  own.crew_.own(std::move(streams));
}

Status Streams::check_here(std::string_view doing) const {
  if (crew_.is_here()) return {};
  return error(Code::kUNSUPPORTED, doing,
               ": the streams were made before this process forked from another; make some here");
}

Status Streams::start() {
  constexpr std::string_view kDoing = "starting streams";
  PFRT_TRY(check_here(kDoing));
  {
    const std::lock_guard lock(mutex_);
    if (state_ == State::kStarted) return {};
  }
  if (crew_.has_caller())
    return error(Code::kBUSY, kDoing,
                 ": they were stopped on one of their own threads, which have not ended yet; start "
                 "them on another thread");
  crew_.wait_until_left();
  {
    const std::lock_guard lock(mutex_);
    if (state_ == State::kStarted) return {};
    state_ = State::kStarted;
    at_streams_ = config_.streams;
    if (started_ns_ == 0) started_ns_ = os::monotonic_ns();
  }
  const uint32_t threads = config_.streams + config_.answerers;
  auto started = crew_.start(
      kDoing, threads, [this](uint32_t index) { serve(index); }, [this] { answer_left(); });
  if (started.ok() && *started == threads) return {};
  {
    const std::lock_guard lock(mutex_);
    // Those that give answers come first, and wait for the streams.
    at_streams_ -= std::min(config_.streams, threads - (started.ok() ? *started : 0));
  }
  stop();
  const std::lock_guard lock(mutex_);
  state_ = State::kNew;
  if (!started.ok()) return started.take_status();
  return error(Code::kBUSY, kDoing, ": there is memory for ", *started, " of ", threads,
               " threads");
}

void Streams::stop() {
  if (!crew_.is_here()) return;
  {
    const std::lock_guard lock(mutex_);
    state_ = State::kStopped;
    for (Stream& stream : streams_) stream.wake.notify_all();
    to_give_.notify_all();
  }
  if (crew_.has_caller()) return;
  crew_.wait_until_left();
  answer_left();  // also of streams that were never started
}

// ---- requests ----

uint32_t Streams::find_least_busy() const {
  return static_cast<uint32_t>(std::ranges::min_element(streams_, {}, &Stream::open) -
                               streams_.begin());
}

uint32_t Streams::least_busy() const {
  if (!crew_.is_here()) return 0;
  const std::lock_guard lock(mutex_);
  return find_least_busy();
}

Status Streams::submit(Request request, uint32_t stream, uint64_t* id) {
  PFRT_TRY(check_here(kSubmitting));
  if (request.inputs.size() != session_->inputs().size())
    return error(Code::kINPUT, kSubmitting, ": ", request.inputs.size(),
                 " inputs were given, the session has ", session_->inputs().size());
  if (stream != kLeastBusy && stream >= config_.streams)
    return error(Code::kINVALID_ARGUMENT, kSubmitting, ": stream ", stream, " of ",
                 config_.streams);
  auto made = std::make_unique<OpenRequest>();
  made->no_memory = error(Code::kOUT_OF_MEMORY, "a request of a stream: no memory left");
  made->request = std::move(request);
  made->submitted_ns = os::monotonic_ns();
  const std::lock_guard lock(mutex_);
  if (state_ == State::kStopped)
    return error(Code::kCANCELLED, kSubmitting, ": the streams are stopped; start them again");
  if (open_.size() >= config_.most_open) {
    ++open_.counts.refused;
    return error(
        Code::kBUSY, kSubmitting, ": ", open_.size(),
        " are not answered yet, as many as max_pending allows; submit it when some are, or "
        "allow more");
  }
  made->stream = stream == kLeastBusy ? find_least_busy() : stream;
  Stream& own = streams_[made->stream];
  open_.add(*made);
  const uint64_t number = made->id;
  if (id) *id = number;
  const int64_t key = order_key(*made, true);
  try {
    own.queue.add(key, std::move(made));
  } catch (const std::bad_alloc&) {
    open_.take_back(number);
    throw;
  }
  ++own.open;
  own.wake.notify_one();
  return {};
}

Status Streams::cancel(uint64_t id) {
  PFRT_TRY(check_here("cancelling a request"));
  const std::lock_guard lock(mutex_);
  PFRT_TRY(open_.cancel(id));
  for (Stream& stream : streams_) stream.wake.notify_one();
  return {};
}

Status Streams::synchronize(uint32_t stream) {
  constexpr std::string_view kDoing = "waiting for a stream's requests";
  PFRT_TRY(check_here(kDoing));
  if (stream != OpenRequests::kAnyStream && stream >= config_.streams)
    return error(Code::kINVALID_ARGUMENT, kDoing, ": stream ", stream, " of ", config_.streams);
  if (crew_.has_caller())
    return error(Code::kINVALID_ARGUMENT, kDoing,
                 ": a thread of the streams' would wait for itself; call it on another");
  std::unique_lock lock(mutex_);
  if (state_ == State::kNew && open_.size() != 0)
    return error(Code::kBUSY, kDoing, ": ", open_.size(), " wait until the streams are started");
  const uint64_t until = open_.next_id();
  answered_.wait(lock, [&] { return !open_.any_before(until, stream); });
  return {};
}

Streams::Statistics Streams::statistics() const {
  if (!crew_.is_here()) return {};
  const std::lock_guard lock(mutex_);
  Statistics out;
  static_cast<RequestCounts&>(out) = open_.counts;
  if (!config_.profiling) out.queued_ns = out.ran_ns = 0;
  out.pending = open_.size();
  if (started_ns_) out.seconds = static_cast<double>(os::monotonic_ns() - started_ns_) / 1e9;
  return out;
}

void Streams::reset_statistics() {
  if (!crew_.is_here()) return;
  const std::lock_guard lock(mutex_);
  open_.counts = {};
  for (Stream& stream : streams_) stream.busy_ns = 0;
  if (started_ns_) started_ns_ = os::monotonic_ns();
}

std::vector<double> Streams::utilization() const {
  std::vector<double> out(config_.streams, 0.0);
  if (!crew_.is_here()) return out;
  const std::lock_guard lock(mutex_);
  const uint64_t ns = started_ns_ ? os::monotonic_ns() - started_ns_ : 0;
  for (size_t i = 0; ns != 0 && i < out.size(); ++i)
    out[i] = std::min(1.0, static_cast<double>(streams_[i].busy_ns) / static_cast<double>(ns));
  return out;
}

// ---- the threads ----

void Streams::serve(uint32_t index) {
  if (index < config_.answerers) return give_answers();
  Stream& stream = streams_[index - config_.answerers];
  serve_stream(stream);
  std::unique_lock lock(mutex_);
  while (OpenRequestPtr left = stream.queue.take_any()) {
    Response none = stopped_answer(*left, "streams were");
    hand_over(lock, std::move(left), std::move(none));
  }
  --at_streams_;
  to_give_.notify_all();
}

void Streams::serve_stream(Stream& stream) {
  std::unique_lock lock(mutex_);
  while (state_ == State::kStarted) {
    try {
      const uint64_t now = os::monotonic_ns();
      auto ended = stream.queue.take_ended(now);
      for (auto& [request, why] : ended) {
        Response none;
        none.status = std::move(why);
        hand_over(lock, std::move(request), std::move(none));
      }
      if (!ended.empty()) continue;  // the lock may have been free, and the streams stopped
      if (stream.queue.empty()) {
        stream.wake.wait(lock);
        continue;
      }
      if (!config_.overlap && running_ != 0) {
        run_over_.wait_for(lock, std::chrono::nanoseconds(kFlagsNs));
        continue;
      }
      int64_t rows = 0;
      auto taken = stream.queue.take(std::string(), 1, rows);
      OpenRequestPtr request = std::move(taken.front());
      ++running_;
      SharedRun shared;
      shared.wanted = 1;
      request->run = &shared;
      lock.unlock();
      Response answer = run(*request);
      lock.lock();
      request->run = nullptr;
      --running_;
      stream.busy_ns += answer.ran_ns;
      if (!config_.overlap) run_over_.notify_one();
      if (!config_.profiling) answer.queued_ns = answer.ran_ns = 0;
      hand_over(lock, std::move(request), std::move(answer));
    } catch (const std::bad_alloc&) {  // nothing was taken; there may be memory soon
      if (!lock.owns_lock()) lock.lock();
      stream.wake.wait_for(lock, std::chrono::milliseconds(1));
    }
  }
}

Response Streams::run(OpenRequest& request) {
  const os::ForkScope scope;
  Response out;
  try {
    const uint64_t began = os::monotonic_ns();
    out.queued_ns = began - std::min(began, request.submitted_ns);
    const Request& asked = request.request;
    RunRequest run;
    run.inputs = asked.inputs;
    run.outputs.resize(session_->outputs().size());
    for (size_t i = 0; i < asked.wanted.size(); ++i) run.outputs[i].wanted = asked.wanted[i];
    run.settings.deadline_ns = asked.deadline_ns;
    // A flag of the caller's own is looked at all the time, one that cancel raises at the end.
    run.settings.cancel = asked.cancel ? asked.cancel : &request.run->stop;
    run.settings.priority = asked.priority;
    auto made = session_->run(std::move(run));
    out.ran_ns = os::monotonic_ns() - began;
    if (made.ok())
      out.outputs = made.take();
    else
      out.status = made.take_status();
  } catch (const std::bad_alloc&) {
    out.status = std::move(request.no_memory);
    out.outputs.clear();
  }
  return out;
}

void Streams::hand_over(std::unique_lock<std::mutex>& lock, OpenRequestPtr request,
                        Response answer) {
  answer.stream = request->stream;
  open_.settle(*request, answer, os::monotonic_ns());
  if (giving_ != 0) {
    try {
      answers_.emplace_back(std::move(request), std::move(answer));
      to_give_.notify_one();
      return;
    } catch (const std::bad_alloc&) {  // it is given here, then
    }
  }
  give(lock, {std::move(request), std::move(answer)});
}

void Streams::give(std::unique_lock<std::mutex>& lock, Answered answered) {
  lock.unlock();
  Request& request = answered.first->request;
  request.inputs.clear();  // before the caller is told that they may go
  const auto done = std::move(request.done);
  const uint64_t id = answered.first->id;
  const uint32_t stream = answered.first->stream;
  done(std::move(answered.second));
  lock.lock();
  --streams_[stream].open;
  open_.close(id);
  answered_.notify_all();
}

void Streams::give_answers() {
  std::unique_lock lock(mutex_);
  ++giving_;
  for (;;) {
    if (answers_.empty()) {
      if (state_ != State::kStarted && at_streams_ == 0) break;
      to_give_.wait(lock);
      continue;
    }
    Answered next = std::move(answers_.front());
    answers_.pop_front();
    give(lock, std::move(next));
  }
  --giving_;
}

void Streams::answer_left() {
  std::unique_lock lock(mutex_);
  for (Stream& stream : streams_)
    while (OpenRequestPtr left = stream.queue.take_any()) {
      Response none = stopped_answer(*left, "streams were");
      hand_over(lock, std::move(left), std::move(none));
    }
}

}  // namespace pfrt
