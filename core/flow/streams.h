// SPDX-License-Identifier: Apache-2.0
//
// Queues of runs of one session. Each stream runs its requests one after another on a thread of its
// own, so that runs of different streams overlap; other threads give the answers. The number of
// requests that are not answered is bounded. Thread-safe.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "core/flow/batch_queue.h"
#include "core/flow/crew.h"
#include "core/flow/open_requests.h"
#include "core/flow/request.h"
#include "core/options/options.h"
#include "core/session/session.h"

namespace pfrt {

class Streams {
 public:
  struct Config {
    uint32_t streams = 0;
    bool overlap = false;    // runs of different streams do
    uint32_t answerers = 0;  // threads that give answers; 0 = the streams' own do
    uint64_t most_open = 0;
    bool profiling = false;  // answers have the times in the queue and of the run
  };
  // |options| are of kind STREAMS. INVALID_ARGUMENT names the option that is out of its range.
  static Result<Config> config_of(const Options& options);

  struct Statistics : RequestCounts {
    uint64_t pending = 0;  // requests that are not answered now
    double seconds = 0;    // since the start, or the last reset
  };

  // |session| is kept.
  Streams(std::shared_ptr<Session> session, Config config);
  ~Streams();
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;
  // As Batcher's.
  static void end(std::shared_ptr<Streams> streams);
  Status start();
  void stop();

  // Takes a request for |stream|, or for the least busy one where it is kLeastBusy. As Batcher's;
  // BUSY where as many as most_open are not answered.
  static constexpr uint32_t kLeastBusy = UINT32_MAX;
  Status submit(Request request, uint32_t stream, uint64_t* id);
  Status cancel(uint64_t id);
  // Waits until what |stream| was given before is answered; OpenRequests::kAnyStream: each of them.
  Status synchronize(uint32_t stream);

  uint32_t count() const { return config_.streams; }
  uint32_t least_busy() const;
  Statistics statistics() const;
  void reset_statistics();
  // The shares of the time since the start, or the last reset, that the streams have run.
  std::vector<double> utilization() const;
  const std::shared_ptr<Session>& session() const { return session_; }

 private:
  enum class State { kNew, kStarted, kStopped };
  struct Stream {
    BatchQueue queue;
    uint64_t open = 0;  // requests that are not answered
    uint64_t busy_ns = 0;
    std::condition_variable wake;
  };
  using Answered = std::pair<OpenRequestPtr, Response>;

  Status check_here(std::string_view doing) const;
  uint32_t find_least_busy() const;
  void serve(uint32_t index);
  void serve_stream(Stream& stream);
  void give_answers();
  Response run(OpenRequest& request);
  // Has the answer given by whoever gives answers. With the lock held, which it may let go of.
  void hand_over(std::unique_lock<std::mutex>& lock, OpenRequestPtr request, Response answer);
  void give(std::unique_lock<std::mutex>& lock, Answered answered);
  void answer_left();

  const std::shared_ptr<Session> session_;
  const Config config_;
  mutable std::mutex mutex_;
  State state_ = State::kNew;
  std::vector<Stream> streams_;
  OpenRequests open_;
  std::deque<Answered> answers_;
  std::condition_variable to_give_, answered_, run_over_;
  uint32_t at_streams_ = 0, giving_ = 0;  // threads that serve streams, and that give answers
  uint32_t running_ = 0;
  uint64_t started_ns_ = 0;
  Crew crew_;  // the last member: its threads use all others
};

}  // namespace pfrt
