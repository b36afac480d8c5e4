// SPDX-License-Identifier: Apache-2.0
//
// Streams: runs of one session that are asked for now and answered later.
//
//   pyflame_rt::streaming::AsyncSession async_session(session, {});
//   async_session.start();
//   pyflame_rt::streaming::AsyncResult result =
//       async_session.run_async({}, {{"input", tensor}}).get();
#pragma once

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
namespace streaming {

// Settings of an asynchronous session.
struct AsyncOptions {
  // Queues, each with a thread that runs its requests one after another.
  int64_t num_streams = 4;
  // Runs of different streams overlap; false = one run at a time.
  bool enable_pipelining = true;
  // Threads that give answers; 0 = the stream's own gives them, and goes on afterwards.
  int64_t callback_threads = 2;
  // Requests that may be unanswered; one more is refused with BusyError.
  int64_t max_pending = 100;
  // Results and statistics have the times in the queue and of the run.
  bool enable_profiling = true;
};

// Times of a request in the queue and in its run; zero without enable_profiling.
struct AsyncProfile {
  // The time from the call to the begin of the run.
  std::chrono::microseconds queue_time{0};
  // The time of the run.
  std::chrono::microseconds compute_time{0};
};

// What became of a request.
struct AsyncResult {
  // Whether the run succeeded.
  bool success = false;
  // Tensors by the names of the outputs; empty after a failure.
  std::unordered_map<std::string, Tensor> outputs;
  // All outputs, those that are no tensors too.
  std::unordered_map<std::string, Value> values;
  // The time from the call to the answer.
  std::chrono::microseconds latency{0};
  // The request's number.
  uint64_t request_id = 0;
  // The stream that ran it.
  size_t stream_id = 0;
  // What failed; "" after success.
  std::string error_message;
  // Its code; PFRT_CODE_OK after success.
  pfrt_code code = PFRT_CODE_OK;
  // Times in the queue and of the run.
  AsyncProfile profiling;
};

// Counts since the session was made, or since reset_stats.
struct AsyncStats {
  // Requests that were taken.
  uint64_t total_requests = 0;
  // Requests that were answered with success.
  uint64_t completed_requests = 0;
  // Requests whose run failed, or whose time was over.
  uint64_t failed_requests = 0;
  // Requests that were cancelled, by their caller or by stop.
  uint64_t cancelled_requests = 0;
  // Requests that were refused, as max_pending were not answered.
  uint64_t dropped_requests = 0;
  // Requests that are not answered now.
  uint64_t pending_requests = 0;
  // The mean time from the call to the answer, of completed requests.
  double avg_latency_us = 0;
  // The part of it before the run began.
  double avg_queue_time_us = 0;
  // The part of it in the run.
  double avg_compute_time_us = 0;
  // Completed requests a second since the start.
  double throughput_rps = 0;
  // The share of the time that each stream has run.
  std::vector<double> stream_utilization;
};

// Settings of one request.
struct AsyncRequest {
  // In its stream a higher one goes first; each step counts as 10 ms of waiting.
  int64_t priority = 0;
  // Time after which it fails; 0 = never.
  std::chrono::milliseconds timeout{0};
};

// Streams of runs of one session. Thread-safe. A tensor that is fed must not be written to until
// its request is answered.
class AsyncSession {
 public:
  // Tensors by the names of the inputs.
  using Inputs = std::unordered_map<std::string, Tensor>;
  // Called once with the result, on one of the callback threads. Exceptions that it throws are
  // logged and dropped.
  using Callback = std::function<void(AsyncResult)>;

  // Keeps the session. Throws InvalidArgumentError for settings out of their ranges.
  explicit AsyncSession(std::shared_ptr<InferenceSession> session, const AsyncOptions& options = {})
      : ports_(std::make_shared<detail::RequestPorts>(std::move(session))) {
    detail::FlowOptions native(PFRT_OPTIONS_STREAMS);
    native.set("num_streams", options.num_streams);
    native.set_flag("enable_pipelining", options.enable_pipelining);
    native.set("callback_threads", options.callback_threads);
    native.set("max_pending", options.max_pending);
    native.set_flag("enable_profiling", options.enable_profiling);
    detail::check(api().streams->create(ports_->session().handle(), native.get(), handle_.out()));
  }

  // Starts the threads; requests that came before wait for it.
  void start() { detail::check(api().streams->start(handle())); }
  // Ends the threads: runs under way end as they would, and requests that wait are answered with
  // the code of CancelledError. The destructor does so too.
  void stop() { detail::check(api().streams->stop(handle())); }

  // Starts a run on the least busy stream; |output_names| empty = all. Throws BusyError where
  // max_pending requests are not answered, CancelledError after stop, and InputError for names that
  // the model does not have; later failures are in the result.
  std::future<AsyncResult> run_async(const std::vector<std::string>& output_names,
                                     const Inputs& inputs, const AsyncRequest& request = {}) {
    return future(0, output_names, inputs, request);
  }
  // The same with a callback; returns the request's number, for cancel.
  uint64_t run_async(const std::vector<std::string>& output_names, const Inputs& inputs,
                     Callback done, const AsyncRequest& request = {}) {
    if (!done) throw InvalidArgumentError("run_async was given an empty callback");
    return send(0, output_names, inputs, request, std::move(done));
  }
  // Starts a run on stream |stream|, from 0 on.
  std::future<AsyncResult> run_on_stream(size_t stream,
                                         const std::vector<std::string>& output_names,
                                         const Inputs& inputs, const AsyncRequest& request = {}) {
    return future(one_more(stream), output_names, inputs, request);
  }
  // The same with a callback; returns the request's number.
  uint64_t run_on_stream(size_t stream, const std::vector<std::string>& output_names,
                         const Inputs& inputs, Callback done, const AsyncRequest& request = {}) {
    if (!done) throw InvalidArgumentError("run_on_stream was given an empty callback");
    return send(one_more(stream), output_names, inputs, request, std::move(done));
  }

  // Number of streams.
  size_t num_streams() const { return api().streams->count(handle()); }
  // The stream with the fewest requests that are not answered.
  size_t select_stream() const { return api().streams->select(handle()); }
  // Waits until what the stream was given before is answered.
  void synchronize(size_t stream) {
    detail::check(api().streams->synchronize(handle(), one_more(stream)));
  }
  // Waits until what every stream was given before is answered.
  void synchronize_all() { detail::check(api().streams->synchronize(handle(), 0)); }

  // Ends a request, whether it waits or runs: its result has the code of CancelledError. Throws
  // NotFoundError where it is answered already.
  void cancel(uint64_t request_id) {
    if (request_id == 0) throw InvalidArgumentError("request 0 was never started");
    detail::check(api().streams->cancel(handle(), request_id));
  }
  // Ends every request that is not answered.
  void cancel_all() { detail::check(api().streams->cancel(handle(), 0)); }

  // The counts so far.
  AsyncStats get_stats() const {
    pfrt_streams_statistics c{};
    c.struct_size = sizeof(c);
    detail::check(api().streams->statistics(handle(), &c));
    AsyncStats out;
    out.total_requests = c.submitted;
    out.completed_requests = c.completed;
    out.failed_requests = c.failed + c.late;
    out.cancelled_requests = c.cancelled;
    out.dropped_requests = c.refused;
    out.pending_requests = c.pending;
    const double done = c.completed != 0 ? static_cast<double>(c.completed) : 1.0;
    out.avg_latency_us = c.latency_ns / done / 1e3;
    out.avg_queue_time_us = c.queued_ns / done / 1e3;
    out.avg_compute_time_us = c.ran_ns / done / 1e3;
    out.throughput_rps = c.seconds > 0 ? static_cast<double>(c.completed) / c.seconds : 0;
    out.stream_utilization.resize(num_streams());
    detail::check(api().streams->utilization(handle(), out.stream_utilization.data(),
                                             out.stream_utilization.size()));
    return out;
  }
  // Sets the counts to zero.
  void reset_stats() { detail::check(api().streams->reset_statistics(handle())); }

  // The C handle, borrowed.
  pfrt_streams* handle() const { return handle_.get(); }

 private:
  uint32_t one_more(size_t stream) const {
    if (stream < num_streams()) return static_cast<uint32_t>(stream) + 1;
    throw InvalidArgumentError("stream " + std::to_string(stream) + ": there are " +
                               std::to_string(num_streams()) + ", from 0 on");
  }
  std::future<AsyncResult> future(uint32_t stream, const std::vector<std::string>& output_names,
                                  const Inputs& inputs, const AsyncRequest& request) {
    auto promise = std::make_shared<std::promise<AsyncResult>>();
    std::future<AsyncResult> out = promise->get_future();
    (void)send(stream, output_names, inputs, request,
               [promise](AsyncResult result) { promise->set_value(std::move(result)); });
    return out;
  }
  uint64_t send(uint32_t stream, const std::vector<std::string>& output_names, const Inputs& given,
                const AsyncRequest& request, Callback done) {
    const std::vector<pfrt_io> inputs = ports_->inputs(given);
    const std::vector<size_t> wanted = ports_->outputs(output_names);
    pfrt_request_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.stream = stream;
    if (!wanted.empty()) desc.outputs = wanted.data();
    desc.output_count = wanted.size();
    desc.priority = request.priority;
    desc.timeout_ms = request.timeout.count();
    auto pending = std::make_unique<detail::PendingRequest>(
        ports_, [done = std::move(done)](detail::TakenResponse taken) {
          done(result_of(std::move(taken)));
        });
    uint64_t id = 0;
    detail::check(api().streams->submit(handle(), inputs.data(), inputs.size(), &desc,
                                        &detail::PendingRequest::finish, pending.get(), &id));
    (void)pending.release();
    return id;
  }
  static AsyncResult result_of(detail::TakenResponse taken) {
    AsyncResult out;
    out.success = taken.code == PFRT_CODE_OK;
    out.outputs = taken.tensors();
    out.values = std::move(taken.values);
    out.error_message = std::move(taken.message);
    out.code = taken.code;
    out.request_id = taken.facts.id;
    out.stream_id = taken.facts.stream;
    const auto us = [](uint64_t ns) {
      return std::chrono::microseconds(static_cast<int64_t>(ns / 1000));
    };
    out.latency = us(taken.facts.latency_ns);
    out.profiling.queue_time = us(taken.facts.queued_ns);
    out.profiling.compute_time = us(taken.facts.ran_ns);
    return out;
  }

  std::shared_ptr<const detail::RequestPorts> ports_;
  detail::Handle<pfrt_streams> handle_;
};

}  // namespace streaming
}  // namespace pyflame_rt
