// SPDX-License-Identifier: Apache-2.0
//
// The requests that an object has taken and not answered yet, by their numbers, and the counts of
// those that it has. One thread at a time.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>

#include "core/base/status.h"
#include "core/flow/open_request.h"

namespace pfrt {

struct RequestCounts {
  uint64_t submitted = 0, completed = 0, failed = 0, cancelled = 0, late = 0, refused = 0;
  double latency_ns = 0;             // sum over completed requests, from submit to the answer
  double queued_ns = 0, ran_ns = 0;  // of these, in the queue and of their runs
};

class OpenRequests {
 public:
  // Gives the request its number, from 1 on.
  void add(OpenRequest& request);
  // Forgets a request that was not taken after all.
  void take_back(uint64_t id);
  uint64_t size() const { return open_.size(); }
  uint64_t next_id() const { return next_id_; }
  // Whether requests before |id| are not answered; of |stream| alone where it is not kAnyStream.
  static constexpr uint32_t kAnyStream = UINT32_MAX;
  bool any_before(uint64_t id, uint32_t stream = kAnyStream) const;

  // Cancels the request, or all where |id| is 0; NOT_FOUND where it is answered.
  Status cancel(uint64_t id);
  // The answer is about to be given: it becomes an error where its request has ended, and is
  // counted. |cancel| does not find the request any more.
  void settle(OpenRequest& request, Response& answer, uint64_t now);
  // The answer was given.
  void close(uint64_t id) { open_.erase(id); }

  RequestCounts counts;

 private:
  struct Entry {
    OpenRequest* request;  // null while it is answered
    uint32_t stream;
  };
  std::unordered_map<uint64_t, Entry> open_;
  uint64_t next_id_ = 1;
};

// Answers a request that waits no more: cancelled, since |what| was stopped.
Response stopped_answer(OpenRequest& request, std::string_view what);

// Returns the key that orders requests, the smallest first: each step of priority counts as 10 ms
// of waiting.
int64_t order_key(const OpenRequest& request, bool by_priority);

}  // namespace pfrt
