// SPDX-License-Identifier: Apache-2.0
//
// Runs many requests to a session together: those that fit and are there at once share a run, up to
// a number of rows. A request waits for others only where that pays: by the times of runs of each
// size (batch_times.h), where more requests were open lately than wait now, and no longer than
// max_latency. The queue is bounded. Where the graph mixes rows, each request runs alone. Requests
// are taken in order of arrival, or by priority (order_key), so that none waits for ever. A shared
// run that fails is done again request by request. Thread-safe.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/flow/batch_form.h"
#include "core/flow/batch_queue.h"
#include "core/flow/batch_times.h"
#include "core/flow/crew.h"
#include "core/flow/open_requests.h"
#include "core/flow/request.h"
#include "core/options/options.h"
#include "core/session/session.h"

namespace pfrt {

class Batcher {
 public:
  struct Config {
    int64_t max_batch_size = 0;      // rows
    uint64_t max_latency_ns = 0;     // that a request waits for others
    int64_t min_batch_size = 0;      // rows that are waited for, within max_latency
    std::vector<int64_t> preferred;  // sizes of batches, in order
    bool padding = false;            // a batch of another size is filled up to a preferred one
    uint32_t workers = 0;
    uint64_t capacity = 0;          // requests that wait
    uint64_t queue_timeout_ns = 0;  // 0 = a request may wait for ever
    bool by_priority = false;
  };
  // |options| are of kind BATCHER. INVALID_ARGUMENT names the option that is out of its range.
  static Result<Config> config_of(const Options& options);

  struct Statistics : RequestCounts {
    uint64_t batches = 0;      // runs
    uint64_t rows = 0;         // of requests, over all runs
    uint64_t padded_rows = 0;  // that nobody asked for
    uint64_t queued = 0;       // now
    uint64_t running = 0;      // runs now
    double seconds = 0;        // since the start, or the last reset
  };

  // |session| is kept.
  Batcher(std::shared_ptr<Session> session, Config config);
  ~Batcher();
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;
  // Stops |batcher| and lets go of it: on one of its own threads, when they have left.
  static void end(std::shared_ptr<Batcher> batcher);

  // Starts the workers; does nothing where they run. BUSY where the system has no thread to give,
  // or they have not left since a stop.
  Status start();
  // Ends the workers: runs under way are finished, and what waits is answered CANCELLED. It may be
  // started again. On a worker it returns at once.
  void stop();
  // Takes a request, whose |done| is called later, unless this fails: BUSY where the queue is full,
  // CANCELLED after stop, INPUT where it has another number of inputs than the session. Requests
  // that come before start wait for it. |id|, which may be null, is written before |done| is
  // called.
  Status submit(Request request, uint64_t* id);
  // Waits for the answer to a request, and runs it on the calling thread where nothing waits and a
  // run is to spare. A request that is not taken is answered with why. |done| is not called.
  Response infer(Request request);
  // Ends the request with CANCELLED, or all where |id| is 0; NOT_FOUND where it is answered.
  Status cancel(uint64_t id);
  // Waits until what was submitted before is answered.
  Status flush();

  Statistics statistics() const;
  void reset_statistics();
  std::vector<BatchTimes::Size> times() const;
  // Why requests do not share runs; empty where they may.
  const std::string& unshared() const { return form_.unshared(); }
  const std::shared_ptr<Session>& session() const { return session_; }

 private:
  using Batch = std::vector<OpenRequestPtr>;
  enum class State { kNew, kStarted, kStopped };
  static constexpr uint64_t kUntilWoken = UINT64_MAX;

  Status check_here(std::string_view doing) const;
  // Makes a request of what is asked for, outside of the lock.
  Result<OpenRequestPtr> make(Request request) const;
  // Lists it as open. With the lock held.
  Status list(OpenRequest& request);
  void see_arrival(const OpenRequest& request);
  // Whether a worker is to look at a request that was added now: it may run, or end while it waits.
  bool needs_worker(const OpenRequest& request) const;

  void work();
  // Whether there were any: the lock was free meanwhile.
  bool answer_ended(std::unique_lock<std::mutex>& lock, uint64_t now);
  void answer_left();
  // Nanoseconds until the group is to run, as far as is known now: 0 = at once, kUntilWoken = when
  // a run ends or more requests come.
  uint64_t wait_of(const std::string& shape, uint64_t now) const;
  bool waiting_pays(int64_t rows) const;
  // Sleeps that long, or until something happens.
  void rest(std::unique_lock<std::mutex>& lock, uint64_t ns, uint64_t now);
  Batch take_batch(const std::string& shape, int64_t& rows, int64_t& size);
  // The rows that |rows| rows run as, fewer where some are better left for the next run.
  int64_t size_for(int64_t rows) const;

  // One of the runs that there may be at once. It is given up before answers are, since those who
  // get them may take their time.
  class Slot;
  void run(Batch batch, int64_t rows, int64_t size, Slot& slot);
  // False where the run failed and the requests are to be run one by one.
  bool run_together(Batch& batch, int64_t rows, int64_t size, Slot& slot);
  // |slot| is null where other requests need it too.
  void run_alone(OpenRequestPtr request, Slot* slot);
  void join(SharedRun& run, const Batch& batch);
  void leave(const Batch& batch);
  // Closes the request, counts it, and gives the answer.
  void answer(OpenRequestPtr request, Response answer);

  const std::shared_ptr<Session> session_;
  const Config config_;
  const BatchForm form_;
  const uint32_t at_once_;  // runs that the machine has threads for
  mutable std::mutex mutex_;
  std::condition_variable wake_, answered_;
  State state_ = State::kNew;
  BatchQueue queue_;
  OpenRequests open_;
  bool collecting_ = false;  // a worker waits until the first group is to run
  bool scan_ = false;        // a request that waits was cancelled
  uint64_t scanned_ns_ = 0;
  uint32_t running_ = 0;
  // What arrivals look like: rows that were open together lately, and nanoseconds between a request
  // and the one, or the answer, before it.
  int64_t open_rows_ = 0;
  double expected_rows_ = 0, gap_ns_ = 0;
  uint64_t last_event_ns_ = 0;
  BatchTimes times_;
  Statistics counts_;
  uint64_t started_ns_ = 0;
  Crew crew_;  // the last member: its threads use all others
};

}  // namespace pfrt
