// SPDX-License-Identifier: Apache-2.0
//
// Batching: requests of many threads share runs of one session.
//
//   pyflame_rt::batching::DynamicBatcher batcher(session, {});
//   batcher.start();
//   pyflame_rt::batching::InferenceRequest request;
//   request.inputs["input"] = tensor;
//   pyflame_rt::batching::InferenceResponse response = batcher.submit(std::move(request)).get();
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <pyflame_rt/request.hpp>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pyflame_rt {
namespace batching {

// Settings of a batcher.
struct BatchConfig {
  // Rows that a shared run has at most.
  int64_t max_batch_size = 32;
  // Time that a request waits for others at most, where a run is to spare and waiting pays.
  std::chrono::microseconds max_latency{1000};
  // Rows that are waited for, within max_latency.
  int64_t min_batch_size = 1;
  // Sizes that batches have with enable_padding.
  std::vector<int64_t> preferred_sizes = {1, 2, 4, 8, 16, 32};
  // Batches of other sizes are filled up to a preferred one with copies of a row, whose results
  // nobody gets.
  bool enable_padding = true;
  // Threads that run batches and give answers; 0 = the number of processors.
  int64_t num_workers = 4;
  // Requests that may wait; one more is refused with BusyError.
  int64_t queue_capacity = 1000;
  // A request that has waited longer fails with TimeoutError's code; 0 = never.
  std::chrono::milliseconds queue_timeout{5000};
};

// A request: rows of a batch, mostly one.
struct InferenceRequest {
  // Tensors by the names of the inputs.
  std::unordered_map<std::string, Tensor> inputs;
  // Outputs that are wanted; empty = all.
  std::vector<std::string> output_names;
  // Of a PriorityBatcher: the highest first. Each step counts as 10 ms of waiting.
  int64_t priority = 0;
  // Time after which the request fails; 0 = never.
  std::chrono::milliseconds timeout{0};
};

// The answer to a request.
struct InferenceResponse {
  // Whether the run succeeded.
  bool success = false;
  // Tensors by the names of the outputs; empty after a failure.
  std::unordered_map<std::string, Tensor> outputs;
  // All outputs, those that are no tensors too.
  std::unordered_map<std::string, Value> values;
  // What failed; "" after success.
  std::string error_message;
  // Its code; PFRT_CODE_OK after success.
  pfrt_code code = PFRT_CODE_OK;
  // The request's number.
  uint64_t request_id = 0;
  // The time from the call to the answer.
  std::chrono::microseconds latency{0};
  // The part of it before the run began.
  std::chrono::microseconds queue_time{0};
  // Rows that the run had, all requests' together.
  int64_t batch_size = 0;
};

// Counts of a batcher since it was made, or since reset_stats.
struct BatcherStats {
  // Requests that were taken.
  uint64_t total_requests = 0;
  // Requests that were answered with success.
  uint64_t completed_requests = 0;
  // Requests whose run failed.
  uint64_t failed_requests = 0;
  // Requests that were cancelled, by their caller or by stop.
  uint64_t cancelled_requests = 0;
  // Requests whose time was over.
  uint64_t expired_requests = 0;
  // Requests that were refused, as the queue was full.
  uint64_t dropped_requests = 0;
  // Runs.
  uint64_t total_batches = 0;
  // Rows of requests in a run.
  double avg_batch_size = 0;
  // Rows that were added to fill batches up.
  uint64_t padded_rows = 0;
  // The mean time from submit to the answer, of completed requests.
  double avg_latency_us = 0;
  // Completed requests a second since the start.
  double throughput_rps = 0;
  // Requests that wait now.
  uint64_t queue_depth = 0;
  // Why requests do not share runs; empty where they do.
  std::string unbatched_reason;
};

// Runs requests of many threads together. Thread-safe. Requests share a run where the model is
// proved to compute each row of a batch by itself; otherwise they run alone. A tensor that was
// submitted must not be written to until its request is answered.
class DynamicBatcher {
 public:
  // Called once with the answer, on a thread of the batcher's, which meanwhile runs nothing else.
  // Exceptions that it throws are logged and dropped.
  using Callback = std::function<void(InferenceResponse)>;

  // Keeps the session. Throws InvalidArgumentError for settings out of their ranges.
  explicit DynamicBatcher(std::shared_ptr<InferenceSession> session, const BatchConfig& config = {})
      : DynamicBatcher(std::move(session), config, false) {}
  virtual ~DynamicBatcher() = default;
  DynamicBatcher(const DynamicBatcher&) = delete;
  DynamicBatcher& operator=(const DynamicBatcher&) = delete;

  // Starts the threads; requests that came before wait for it.
  void start() {
    detail::check(api().batcher->start(handle()));
    running_ = true;
  }
  // Ends the threads: runs under way end as they would, and requests that wait are answered with
  // the code of CancelledError. The destructor does so too.
  void stop() {
    running_ = false;
    detail::check(api().batcher->stop(handle()));
  }
  // Whether start was called, and stop was not since.
  bool is_running() const { return running_; }

  // Submits a request. Throws BusyError where the queue is full, CancelledError after stop, and
  // InputError for names that the model does not have; later failures are in the response.
  std::future<InferenceResponse> submit(InferenceRequest&& request) {
    auto promise = std::make_shared<std::promise<InferenceResponse>>();
    std::future<InferenceResponse> future = promise->get_future();
    (void)send(request,
               [promise](InferenceResponse response) { promise->set_value(std::move(response)); });
    return future;
  }
  std::future<InferenceResponse> submit(const InferenceRequest& request) {
    return submit(InferenceRequest(request));
  }
  // The same with a callback; returns the request's number, for cancel.
  uint64_t submit(InferenceRequest&& request, Callback done) {
    if (!done) throw InvalidArgumentError("submit was given an empty callback");
    return send(request, std::move(done));
  }
  uint64_t submit(const InferenceRequest& request, Callback done) {
    return submit(InferenceRequest(request), std::move(done));
  }
  // Submits several requests.
  std::vector<std::future<InferenceResponse>> submit_batch(
      const std::vector<InferenceRequest>& requests) {
    std::vector<std::future<InferenceResponse>> out;
    for (const InferenceRequest& request : requests) out.push_back(submit(request));
    return out;
  }
  // Submits a request and waits for its answer. Where nothing else is there, the calling thread
  // runs it. Throws where the request was not taken.
  InferenceResponse infer(InferenceRequest&& request) {
    const std::vector<pfrt_io> inputs = ports_->inputs(request.inputs);
    const std::vector<size_t> wanted = ports_->outputs(request.output_names);
    const pfrt_request_desc desc = desc_of(request, wanted);
    std::vector<pfrt_value*> values(ports_->session().get_outputs().size());
    pfrt_response facts{};
    facts.struct_size = sizeof(facts);
    pfrt_status* const status = api().batcher->infer(handle(), inputs.data(), inputs.size(), &desc,
                                                     values.data(), values.size(), &facts);
    if (status != nullptr && facts.id == 0) detail::check(status);
    return response_of(
        detail::RequestPorts::take(ports_->session(), status, values.data(), values.size(), facts));
  }
  InferenceResponse infer(const InferenceRequest& request) {
    return infer(InferenceRequest(request));
  }

  // Ends a request: its answer has the code of CancelledError. Throws NotFoundError where it is
  // answered already.
  void cancel(uint64_t request_id) {
    if (request_id == 0) throw InvalidArgumentError("request 0 was never submitted");
    detail::check(api().batcher->cancel(handle(), request_id));
  }
  // Ends every request that is not answered.
  void cancel_all() { detail::check(api().batcher->cancel(handle(), 0)); }
  // Waits until every request that was submitted before is answered.
  void flush() { detail::check(api().batcher->flush(handle())); }

  // The counts so far.
  BatcherStats get_stats() const {
    pfrt_batcher_statistics c{};
    c.struct_size = sizeof(c);
    detail::check(api().batcher->statistics(handle(), &c));
    BatcherStats out;
    out.total_requests = c.submitted;
    out.completed_requests = c.completed;
    out.failed_requests = c.failed;
    out.cancelled_requests = c.cancelled;
    out.expired_requests = c.late;
    out.dropped_requests = c.refused;
    out.total_batches = c.batches;
    out.padded_rows = c.padded_rows;
    out.queue_depth = c.queued;
    out.unbatched_reason = detail::str(c.unshared);
    const auto ratio = [](double a, double b) { return b > 0 ? a / b : 0; };
    const auto completed = static_cast<double>(c.completed);
    out.avg_batch_size = ratio(static_cast<double>(c.rows), static_cast<double>(c.batches));
    out.avg_latency_us = ratio(c.latency_ns / 1e3, completed);
    out.throughput_rps = ratio(completed, c.seconds);
    return out;
  }
  // Sets the counts to zero.
  void reset_stats() { detail::check(api().batcher->reset_statistics(handle())); }
  // Requests that wait.
  size_t queue_size() const { return static_cast<size_t>(get_stats().queue_depth); }
  // How long runs take by their rows, as it was measured while they happened.
  std::unordered_map<int64_t, std::chrono::nanoseconds> batch_times() const {
    size_t count = 0;
    detail::check(api().batcher->times(handle(), nullptr, 0, &count));
    std::vector<pfrt_batch_time> times(count);
    for (pfrt_batch_time& time : times) time.struct_size = sizeof(time);
    detail::check(api().batcher->times(handle(), times.data(), times.size(), &count));
    std::unordered_map<int64_t, std::chrono::nanoseconds> out;
    for (size_t i = 0; i < std::min(count, times.size()); ++i)
      out[times[i].rows] = std::chrono::nanoseconds(static_cast<int64_t>(times[i].ns));
    return out;
  }

  // The C handle, borrowed.
  pfrt_batcher* handle() const { return handle_.get(); }

 protected:
  // |by_priority|: requests go by their priority.
  DynamicBatcher(std::shared_ptr<InferenceSession> session, const BatchConfig& config,
                 bool by_priority)
      : ports_(std::make_shared<detail::RequestPorts>(std::move(session))) {
    detail::FlowOptions options(PFRT_OPTIONS_BATCHER);
    options.set("max_batch_size", config.max_batch_size);
    options.set("max_latency_us", config.max_latency.count());
    options.set("min_batch_size", config.min_batch_size);
    std::vector<std::string> sizes;
    for (const int64_t size : config.preferred_sizes) sizes.push_back(std::to_string(size));
    options.set("preferred_sizes", sizes);
    options.set_flag("enable_padding", config.enable_padding);
    options.set("num_workers", config.num_workers);
    options.set("queue_capacity", config.queue_capacity);
    options.set("queue_timeout_ms", config.queue_timeout.count());
    options.set_flag("by_priority", by_priority);
    detail::check(api().batcher->create(ports_->session().handle(), options.get(), handle_.out()));
  }

 private:
  static pfrt_request_desc desc_of(const InferenceRequest& request,
                                   const std::vector<size_t>& wanted) {
    pfrt_request_desc out{};
    out.struct_size = sizeof(out);
    if (!wanted.empty()) out.outputs = wanted.data();
    out.output_count = wanted.size();
    out.priority = request.priority;
    out.timeout_ms = request.timeout.count();
    return out;
  }
  static InferenceResponse response_of(detail::TakenResponse taken) {
    InferenceResponse out;
    out.success = taken.code == PFRT_CODE_OK;
    out.outputs = taken.tensors();
    out.values = std::move(taken.values);
    out.error_message = std::move(taken.message);
    out.code = taken.code;
    out.request_id = taken.facts.id;
    const auto us = [](uint64_t ns) {
      return std::chrono::microseconds(static_cast<int64_t>(ns / 1000));
    };
    out.latency = us(taken.facts.latency_ns);
    out.queue_time = us(taken.facts.queued_ns);
    out.batch_size = taken.facts.rows;
    return out;
  }
  uint64_t send(const InferenceRequest& request, Callback done) {
    const std::vector<pfrt_io> inputs = ports_->inputs(request.inputs);
    const std::vector<size_t> wanted = ports_->outputs(request.output_names);
    const pfrt_request_desc desc = desc_of(request, wanted);
    auto pending = std::make_unique<detail::PendingRequest>(
        ports_, [done = std::move(done)](detail::TakenResponse taken) {
          done(response_of(std::move(taken)));
        });
    uint64_t id = 0;
    detail::check(api().batcher->submit(handle(), inputs.data(), inputs.size(), &desc,
                                        &detail::PendingRequest::finish, pending.get(), &id));
    (void)pending.release();
    return id;
  }

  std::shared_ptr<const detail::RequestPorts> ports_;
  std::atomic<bool> running_{false};
  detail::Handle<pfrt_batcher> handle_;
};

// A batcher whose requests of higher priority go first. Each step of priority counts as 10 ms of
// waiting, so that the others go too.
class PriorityBatcher : public DynamicBatcher {
 public:
  explicit PriorityBatcher(std::shared_ptr<InferenceSession> session,
                           const BatchConfig& config = {})
      : DynamicBatcher(std::move(session), config, true) {}
  // Submits a request of |priority|, 0 or more, in place of its own.
  std::future<InferenceResponse> submit_priority(InferenceRequest&& request, int64_t priority) {
    request.priority = priority;
    return submit(std::move(request));
  }
};

// Makes a batcher and starts it.
inline std::unique_ptr<DynamicBatcher> create_batcher(std::shared_ptr<InferenceSession> session,
                                                      const BatchConfig& config = {}) {
  auto out = std::make_unique<DynamicBatcher>(std::move(session), config);
  out->start();
  return out;
}

}  // namespace batching
}  // namespace pyflame_rt
