// SPDX-License-Identifier: Apache-2.0
#include "core/flow/batcher.h"

#include <algorithm>
#include <charconv>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include "core/base/os/cpu.h"
#include "core/base/os/fork.h"
#include "core/session/run.h"

namespace pfrt {
namespace {

constexpr std::string_view kMaking = "making a batcher";
constexpr std::string_view kSubmitting = "submitting a request";
// A timer of the system may come this much late, so that shorter times are waited for awake.
constexpr uint64_t kTimerNs = 60'000;
// The interval at which flags of callers are looked at while their requests wait.
constexpr uint64_t kFlagsNs = 5'000'000;
constexpr double kWeight = 0.125;  // of a new measurement among those before it

Status range(std::string_view name, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return {};
  return error(Code::kINVALID_ARGUMENT, kMaking, ": ", name, " is ", value, "; it is ", least,
               " to ", most);
}

Result<std::vector<int64_t>> sizes_of(const std::vector<std::string>& texts) {
  std::vector<int64_t> out;
  for (const std::string& text : texts) {
    int64_t size = 0;
    const char* const end = text.data() + text.size();
    const auto [at, fault] = std::from_chars(text.data(), end, size);
    if (fault != std::errc() || at != end || size < 1 || size > (int64_t{1} << 20))
      return error(Code::kINVALID_ARGUMENT, kMaking, ": a preferred size is '", text,
                   "'; preferred_sizes are numbers of rows, as \"1,2,4,8\"");
    out.push_back(size);
  }
  std::ranges::sort(out);
  return out;
}

}  // namespace

// With the lock held it is taken.
class Batcher::Slot {
 public:
  explicit Slot(Batcher& batcher) : batcher_(&batcher) { ++batcher.running_; }
  ~Slot() { give_up(); }
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;
  void give_up() {
    if (!batcher_) return;
    Batcher& batcher = *std::exchange(batcher_, nullptr);
    bool more = false;
    {
      const std::lock_guard lock(batcher.mutex_);
      --batcher.running_;
      more = !batcher.queue_.empty();
    }
    if (more) batcher.wake_.notify_one();
  }

 private:
  Batcher* batcher_;
};

// ---- making, starting, ending ----

Result<Batcher::Config> Batcher::config_of(const Options& o) {
  constexpr int64_t kMost = int64_t{1} << 20, kMostUs = int64_t{3'600'000'000};
  Config out;
  out.max_batch_size = o.get(batcher_option::kMaxBatchSize);
  PFRT_TRY(range("max_batch_size", out.max_batch_size, 1, kMost));
  out.min_batch_size = o.get(batcher_option::kMinBatchSize);
  PFRT_TRY(range("min_batch_size", out.min_batch_size, 1, out.max_batch_size));
  const int64_t latency = o.get(batcher_option::kMaxLatencyUs);
  PFRT_TRY(range("max_latency_us", latency, 0, kMostUs));
  out.max_latency_ns = static_cast<uint64_t>(latency) * 1000;
  const int64_t workers = o.get(batcher_option::kNumWorkers);
  PFRT_TRY(range("num_workers", workers, 0, 256));
  out.workers =
      workers != 0 ? static_cast<uint32_t>(workers) : std::min(256u, os::usable_processors());
  const int64_t capacity = o.get(batcher_option::kQueueCapacity);
  PFRT_TRY(range("queue_capacity", capacity, 1, int64_t{1} << 40));
  out.capacity = static_cast<uint64_t>(capacity);
  const int64_t timeout = o.get(batcher_option::kQueueTimeoutMs);
  PFRT_TRY(range("queue_timeout_ms", timeout, 0, int64_t{1} << 40));
  out.queue_timeout_ns = static_cast<uint64_t>(timeout) * 1'000'000;
  PFRT_ASSIGN(out.preferred, sizes_of(o.get(batcher_option::kPreferredSizes)));
  out.padding = o.get(batcher_option::kEnablePadding);
  out.by_priority = o.get(batcher_option::kByPriority);
  return out;
}

Batcher::Batcher(std::shared_ptr<Session> session, Config config)
    : session_(std::move(session)),
      config_(std::move(config)),
      form_(BatchForm::of(*session_)),
      at_once_(std::clamp(os::usable_processors() / std::max(1u, session_->width(0)), 1u,
                          config_.workers)),
      crew_(config_.workers, *session_) {}

Batcher::~Batcher() {
  if (crew_.is_here() && !crew_.has_caller()) stop();
}

void Batcher::end(std::shared_ptr<Batcher> batcher) {
  if (!batcher->crew_.is_here()) {
    // A condition that threads of the parent wait for cannot be destroyed here.
    static_cast<void>(new std::shared_ptr<Batcher>(std::move(batcher)));
    return;
  }
  if (!batcher->crew_.has_caller()) return;  // the destructor stops it
  Batcher& own = *batcher;
  own.stop();
  own.crew_.own(std::move(batcher));
}

Status Batcher::check_here(std::string_view doing) const {
  if (crew_.is_here()) return {};
  return error(Code::kUNSUPPORTED, doing,
               ": the batcher was made before this process forked from another; make one here");
}

Status Batcher::start() {
  constexpr std::string_view kDoing = "starting a batcher";
  PFRT_TRY(check_here(kDoing));
  {
    const std::lock_guard lock(mutex_);
    if (state_ == State::kStarted) return {};
  }
  if (crew_.has_caller())
    return error(Code::kBUSY, kDoing,
                 ": it was stopped on one of its own threads, which have not ended yet; start it "
                 "on another thread");
  crew_.wait_until_left();
  {
    const std::lock_guard lock(mutex_);
    if (state_ == State::kStarted) return {};
    state_ = State::kStarted;
    if (started_ns_ == 0) started_ns_ = os::monotonic_ns();
  }
  auto started = crew_.start(
      kDoing, config_.workers, [this](uint32_t) { work(); }, [this] { answer_left(); });
  if (started.ok()) return {};
  const std::lock_guard lock(mutex_);
  state_ = State::kNew;
  return started.take_status();
}

void Batcher::stop() {
  if (!crew_.is_here()) return;
  {
    const std::lock_guard lock(mutex_);
    state_ = State::kStopped;
  }
  wake_.notify_all();
  if (crew_.has_caller()) return;
  crew_.wait_until_left();
  answer_left();  // also of a batcher that was never started
}

// ---- taking requests ----

Result<OpenRequestPtr> Batcher::make(Request request) const {
  if (request.inputs.size() != session_->inputs().size())
    return error(Code::kINPUT, kSubmitting, ": ", request.inputs.size(),
                 " inputs were given, the session has ", session_->inputs().size());
  auto out = std::make_unique<OpenRequest>();
  BatchForm::Place place = form_.place(request.inputs);
  out->rows = place.rows;
  out->shape = std::move(place.shape);
  out->no_memory = error(Code::kOUT_OF_MEMORY, "a request in a batcher: no memory left");
  out->request = std::move(request);
  out->submitted_ns = os::monotonic_ns();
  if (config_.queue_timeout_ns) out->queue_until_ns = out->submitted_ns + config_.queue_timeout_ns;
  return out;
}

Status Batcher::list(OpenRequest& request) {
  if (state_ == State::kStopped)
    return error(Code::kCANCELLED, kSubmitting, ": the batcher is stopped; start it again");
  if (queue_.size() >= config_.capacity) {
    ++open_.counts.refused;
    return error(Code::kBUSY, kSubmitting, ": ", queue_.size(),
                 " wait already, as many as queue_capacity allows; submit it when some are "
                 "answered, or allow more");
  }
  open_.add(request);
  return {};
}

void Batcher::see_arrival(const OpenRequest& request) {
  open_rows_ += request.rows;
  expected_rows_ = std::max(expected_rows_, static_cast<double>(open_rows_));
  const uint64_t now = request.submitted_ns;
  const double gap = now > last_event_ns_ ? static_cast<double>(now - last_event_ns_) : 0;
  gap_ns_ += kWeight * (gap - gap_ns_);
  last_event_ns_ = std::max(last_event_ns_, now);
}

bool Batcher::needs_worker(const OpenRequest& request) const {
  return running_ < at_once_ || request.request.cancel || request.request.deadline_ns;
}

Status Batcher::submit(Request request, uint64_t* id) {
  PFRT_TRY(check_here(kSubmitting));
  PFRT_ASSIGN(OpenRequestPtr made, make(std::move(request)));
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    OpenRequest& open = *made;
    PFRT_TRY(list(open));
    if (id) *id = open.id;
    const uint64_t own = open.id;
    const bool alone = open.shape.empty();
    const std::string& shape = open.shape;
    try {
      queue_.add(order_key(open, config_.by_priority), std::move(made));
    } catch (const std::bad_alloc&) {
      open_.take_back(own);
      throw;
    }
    see_arrival(open);
    // A worker that collects looks by itself, unless the batch is complete now. Where no run is to
    // spare, the end of one wakes a worker.
    wake = needs_worker(open) &&
           (!collecting_ || alone || queue_.group(shape).rows >= config_.max_batch_size ||
            !waiting_pays(queue_.group(shape).rows));
  }
  if (wake) wake_.notify_one();
  return {};
}

Response Batcher::infer(Request request) {
  std::mutex mutex;
  std::condition_variable answered;
  std::optional<Response> out;
  const auto refused = [](Status why) {
    Response none;
    none.status = std::move(why);
    return none;
  };
  request.done = [&](Response answer) {
    const std::lock_guard lock(mutex);
    out = std::move(answer);
    answered.notify_one();  // inside the lock: after unlocking all this may be gone
  };
  if (Status here = check_here(kSubmitting); !here.ok()) return refused(std::move(here));
  auto made = make(std::move(request));
  if (!made.ok()) return refused(made.take_status());
  OpenRequestPtr open = made.take();
  std::optional<Slot> slot;
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    if (Status listed = list(*open); !listed.ok()) return refused(std::move(listed));
    OpenRequest& own = *open;
    see_arrival(own);
    const bool idle = state_ == State::kStarted && queue_.empty() && running_ < at_once_;
    // One of the workers may not wait for the others, who may all be waiting too.
    if (crew_.has_caller() || (idle && (own.shape.empty() || !waiting_pays(own.rows)))) {
      slot.emplace(*this);
    } else {
      wake = needs_worker(own);
      const uint64_t id = own.id;
      const int64_t rows = own.rows;
      try {
        queue_.add(order_key(own, config_.by_priority), std::move(open));
      } catch (const std::bad_alloc&) {
        open_.take_back(id);
        open_rows_ -= rows;
        throw;
      }
    }
  }
  if (slot)
    run_alone(std::move(open), &*slot);
  else if (wake)
    wake_.notify_one();
  std::unique_lock lock(mutex);
  answered.wait(lock, [&] { return out.has_value(); });
  return std::move(*out);
}

Status Batcher::cancel(uint64_t id) {
  PFRT_TRY(check_here("cancelling a request"));
  {
    const std::lock_guard lock(mutex_);
    PFRT_TRY(open_.cancel(id));
    scan_ = !queue_.empty();
  }
  wake_.notify_one();
  return {};
}

Status Batcher::flush() {
  constexpr std::string_view kDoing = "waiting for a batcher's requests";
  PFRT_TRY(check_here(kDoing));
  if (crew_.has_caller())
    return error(Code::kINVALID_ARGUMENT, kDoing,
                 ": a thread of the batcher's would wait for itself; call it on another");
  std::unique_lock lock(mutex_);
  if (state_ == State::kNew && !queue_.empty())
    return error(Code::kBUSY, kDoing, ": ", queue_.size(), " wait until it is started");
  const uint64_t until = open_.next_id();
  answered_.wait(lock, [&] { return !open_.any_before(until); });
  return {};
}

Batcher::Statistics Batcher::statistics() const {
  if (!crew_.is_here()) return {};
  const std::lock_guard lock(mutex_);
  Statistics out = counts_;
  static_cast<RequestCounts&>(out) = open_.counts;
  out.queued = queue_.size();
  out.running = running_;
  if (started_ns_) out.seconds = static_cast<double>(os::monotonic_ns() - started_ns_) / 1e9;
  return out;
}

void Batcher::reset_statistics() {
  if (!crew_.is_here()) return;
  const std::lock_guard lock(mutex_);
  counts_ = {};
  open_.counts = {};
  if (started_ns_) started_ns_ = os::monotonic_ns();
}

std::vector<BatchTimes::Size> Batcher::times() const {
  if (!crew_.is_here()) return {};
  const std::lock_guard lock(mutex_);
  return times_.sizes();
}

// ---- the workers ----

bool Batcher::waiting_pays(int64_t rows) const {
  if (rows >= config_.max_batch_size) return false;
  if (rows < config_.min_batch_size) return true;
  // All that were open lately wait here: nobody is left who could come soon.
  if (static_cast<double>(rows) + 0.5 > expected_rows_) return false;
  return gap_ns_ < times_.worth_waiting(rows);
}

uint64_t Batcher::wait_of(const std::string& shape, uint64_t now) const {
  if (running_ >= at_once_) return kUntilWoken;
  const BatchQueue::Group& group = queue_.group(shape);
  if (shape.empty() || !waiting_pays(group.rows)) return 0;
  uint64_t until = group.waiting.begin()->second->submitted_ns + config_.max_latency_ns;
  if (group.rows >= config_.min_batch_size)
    until =
        std::min(until, last_event_ns_ + static_cast<uint64_t>(times_.worth_waiting(group.rows)));
  return until > now ? until - now : 0;
}

void Batcher::rest(std::unique_lock<std::mutex>& lock, uint64_t ns, uint64_t now) {
  if (collecting_) {  // another worker looks at the clock
    wake_.wait(lock);
    return;
  }
  if (!queue_.empty()) {
    if (const uint64_t ends = queue_.ends_ns(); ends != UINT64_MAX)
      ns = std::min(ns, ends > now ? ends - now : 0);
    if (queue_.flagged()) ns = std::min(ns, kFlagsNs);
  }
  if (ns == kUntilWoken) {
    wake_.wait(lock);
    return;
  }
  collecting_ = true;
  if (ns < kTimerNs) {
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
  } else {
    wake_.wait_for(lock, std::chrono::nanoseconds(ns));
  }
  collecting_ = false;
}

int64_t Batcher::size_for(int64_t rows) const {
  const std::vector<int64_t>& sizes = config_.preferred;
  if (!config_.padding || sizes.empty()) return rows;
  const auto above = std::ranges::lower_bound(sizes, rows);
  if (above == sizes.end() || *above == rows) return rows;
  if (above == sizes.begin()) return *above;
  const int64_t below = above[-1];
  const double up = times_.of(*above) / static_cast<double>(rows);
  const double down = times_.of(below) / static_cast<double>(below);
  return times_.known() && down < up ? below : *above;
}

Batcher::Batch Batcher::take_batch(const std::string& shape, int64_t& rows, int64_t& size) {
  const bool alone = shape.empty();
  const int64_t there = std::min(queue_.group(shape).rows, config_.max_batch_size);
  const int64_t most = alone ? there : size_for(there);
  Batch out =
      queue_.take(shape, std::min(std::max(most, int64_t{1}), config_.max_batch_size), rows);
  size = alone ? rows : std::max(rows, size_for(rows));
  if (size > config_.max_batch_size) size = rows;
  return out;
}

bool Batcher::answer_ended(std::unique_lock<std::mutex>& lock, uint64_t now) {
  const bool flags = queue_.flagged() && now - scanned_ns_ >= kFlagsNs;
  if (!scan_ && !flags && now < queue_.ends_ns()) return false;
  scan_ = false;
  scanned_ns_ = now;
  auto ended = queue_.take_ended(now);
  if (ended.empty()) return false;
  lock.unlock();
  for (auto& [request, why] : ended) {
    Response none;
    none.status = std::move(why);
    answer(std::move(request), std::move(none));
  }
  lock.lock();
  return true;
}

void Batcher::work() {
  std::unique_lock lock(mutex_);
  while (state_ == State::kStarted) {
    try {
      const uint64_t now = os::monotonic_ns();
      if (answer_ended(lock, now)) continue;  // it may have been stopped meanwhile
      const std::string* const first = queue_.first_group();
      const uint64_t wait = first ? wait_of(*first, now) : kUntilWoken;
      if (wait != 0) {
        rest(lock, wait, now);
        continue;
      }
      const std::string shape = *first;  // the group may go
      int64_t rows = 0, size = 0;
      Batch batch = take_batch(shape, rows, size);
      Slot slot(*this);
      expected_rows_ += kWeight * (static_cast<double>(open_rows_) - expected_rows_);
      const bool more = !queue_.empty();
      lock.unlock();
      if (more && at_once_ > 1) wake_.notify_one();
      run(std::move(batch), rows, size, slot);
      slot.give_up();
      lock.lock();
    } catch (const std::bad_alloc&) {  // nothing was taken; there may be memory soon
      if (!lock.owns_lock()) lock.lock();
      wake_.wait_for(lock, std::chrono::milliseconds(1));
    }
  }
}

void Batcher::answer_left() {
  for (;;) {
    OpenRequestPtr left;
    {
      const std::lock_guard lock(mutex_);
      left = queue_.take_any();
    }
    if (!left) return;
    Response none = stopped_answer(*left, "batcher was");
    answer(std::move(left), std::move(none));
  }
}

// ---- runs ----

void Batcher::join(SharedRun& run, const Batch& batch) {
  const std::lock_guard lock(mutex_);
  for (const OpenRequestPtr& one : batch) {
    one->run = &run;
    run.wanted += !one->cancelled;
  }
  if (run.wanted == 0) run.stop = 1;
}

void Batcher::leave(const Batch& batch) {
  const std::lock_guard lock(mutex_);
  for (const OpenRequestPtr& one : batch) one->run = nullptr;
}

void Batcher::run(Batch batch, int64_t rows, int64_t size, Slot& slot) {
  const os::ForkScope scope;
  if (batch.size() > 1 || size > rows) {
    if (run_together(batch, rows, size, slot)) return;
  }
  for (OpenRequestPtr& one : batch)
    run_alone(std::move(one), &one == &batch.back() ? &slot : nullptr);
}

bool Batcher::run_together(Batch& batch, int64_t rows, int64_t size, Slot& slot) try {
  const uint64_t began = os::monotonic_ns();
  std::vector<const Request*> requests;
  std::vector<OutputRequest> outputs(session_->outputs().size());
  for (OutputRequest& output : outputs) output.wanted = false;
  RunSettings settings;
  bool all_end = true;
  for (const OpenRequestPtr& one : batch) {
    const Request& request = one->request;
    requests.push_back(&request);
    all_end = all_end && request.deadline_ns != 0;
    settings.deadline_ns = std::max(settings.deadline_ns, request.deadline_ns);
    for (size_t i = 0; i < outputs.size(); ++i)
      outputs[i].wanted = outputs[i].wanted || request.wanted.empty() || request.wanted[i];
  }
  if (!all_end) settings.deadline_ns = 0;
  std::vector<Response> answers(batch.size());
  for (Response& one : answers) one.outputs.resize(outputs.size());

  SharedRun shared;
  settings.cancel = &shared.stop;
  join(shared, batch);
  struct Leave {
    Batcher& batcher;
    const Batch& batch;
    ~Leave() { batcher.leave(batch); }
  };
  std::vector<ValuePtr> made;
  {
    const Leave at_end{*this, batch};
    Run run(*session_, std::move(settings));
    const MemoryScope memory(&run.memory());
    auto joined = form_.join(requests, rows, size);
    if (!joined.ok()) return false;
    if (!run.take(joined.take(), std::move(outputs)).ok()) return false;
    if (!run.carry_out(made).ok()) return false;
  }
  const uint64_t over = os::monotonic_ns();
  int64_t first = 0;
  for (size_t b = 0; b < batch.size(); ++b) {
    Response& one = answers[b];
    one.queued_ns = began - std::min(began, batch[b]->submitted_ns);
    one.ran_ns = over - began;
    one.rows = rows;
    const std::vector<bool>& own = batch[b]->request.wanted;
    for (size_t i = 0; i < one.outputs.size(); ++i) {
      if (!own.empty() && !own[i]) continue;
      auto part = form_.part(i, made[i], first, batch[b]->rows, size);
      if (!part.ok()) return false;
      one.outputs[i] = part.take();
    }
    first += batch[b]->rows;
  }
  made.clear();
  {
    const std::lock_guard lock(mutex_);
    times_.add(size, static_cast<double>(over - began));
    ++counts_.batches;
    counts_.rows += static_cast<uint64_t>(rows);
    counts_.padded_rows += static_cast<uint64_t>(size - rows);
    last_event_ns_ = over;
  }
  slot.give_up();
  for (size_t b = 0; b < batch.size(); ++b) answer(std::move(batch[b]), std::move(answers[b]));
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

void Batcher::run_alone(OpenRequestPtr request, Slot* slot) {
  Response out;
  try {
    const uint64_t began = os::monotonic_ns();
    out.queued_ns = began - std::min(began, request->submitted_ns);
    SharedRun shared;
    {
      const std::lock_guard lock(mutex_);
      out.status = request->ended(began, false);
      request->run = &shared;
      shared.wanted = 1;
    }
    if (out.status.ok()) {
      const Request& asked = request->request;
      RunRequest run;
      run.inputs = asked.inputs;
      run.outputs.resize(session_->outputs().size());
      for (size_t i = 0; i < asked.wanted.size(); ++i) run.outputs[i].wanted = asked.wanted[i];
      run.settings.deadline_ns = asked.deadline_ns;
      // A flag of the caller's own is looked at all the time, one that cancel raises at the end.
      run.settings.cancel = asked.cancel ? asked.cancel : &shared.stop;
      run.settings.priority = asked.priority;
      auto made = session_->run(std::move(run));
      const uint64_t over = os::monotonic_ns();
      out.ran_ns = over - began;
      out.rows = request->rows;
      if (made.ok())
        out.outputs = made.take();
      else
        out.status = made.take_status();
      const std::lock_guard lock(mutex_);
      request->run = nullptr;
      if (out.status.ok() && !request->shape.empty())
        times_.add(request->rows, static_cast<double>(out.ran_ns));
      ++counts_.batches;
      counts_.rows += static_cast<uint64_t>(request->rows);
      last_event_ns_ = over;
    } else {
      const std::lock_guard lock(mutex_);
      request->run = nullptr;
    }
  } catch (const std::bad_alloc&) {
    out.status = std::move(request->no_memory);
    out.outputs.clear();
    const std::lock_guard lock(mutex_);
    request->run = nullptr;
  }
  if (slot) slot->give_up();
  answer(std::move(request), std::move(out));
}

void Batcher::answer(OpenRequestPtr request, Response out) {
  {
    const std::lock_guard lock(mutex_);
    open_.settle(*request, out, os::monotonic_ns());
    open_rows_ -= request->rows;
  }
  request->request.inputs.clear();  // before the caller is told that they may go
  const auto done = std::move(request->request.done);
  const uint64_t id = out.id;
  done(std::move(out));
  const std::lock_guard lock(mutex_);
  open_.close(id);
  answered_.notify_all();  // inside the lock: after unlocking, whoever waits may end the batcher
}

}  // namespace pfrt
