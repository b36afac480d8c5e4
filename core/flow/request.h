// SPDX-License-Identifier: Apache-2.0
//
// A request to a session, which others run when its turn comes, and its answer.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/base/status.h"
#include "core/memory/tensor.h"

namespace pfrt {

struct Response {
  Status status;
  uint64_t id = 0;
  // By the session's outputs, null where unwanted; empty after a failure. Rows of a shared run are
  // views of its outputs, which live as long as any of them.
  std::vector<ValuePtr> outputs;
  uint32_t stream = 0;      // that ran it
  int64_t rows = 0;         // of a batcher: of all requests that shared the run
  uint64_t queued_ns = 0;   // from submit until the run began
  uint64_t ran_ns = 0;      // of the run
  uint64_t latency_ns = 0;  // from submit to the answer
};

struct Request {
  std::vector<ValuePtr> inputs;      // by the session's inputs; null = not fed
  std::vector<bool> wanted;          // by the session's outputs; empty = all
  int64_t priority = 0;              // larger ones are sooner
  uint64_t deadline_ns = 0;          // on os::monotonic_ns; 0 = none
  const uint32_t* cancel = nullptr;  // ends it once raised; lives until it is answered
  // Is called once, without a lock, on a thread of whoever has taken the request. It may throw
  // nothing.
  std::function<void(Response answer)> done;
};

}  // namespace pfrt
