// SPDX-License-Identifier: Apache-2.0
//
// Requests that are taken and not answered yet, and how one of them ends before its time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/base/stop.h"
#include "core/flow/request.h"

namespace pfrt {

// A run under way, and how many of its requests still want it.
struct SharedRun {
  uint32_t stop = 0;  // raised, atomically, once none does
  uint64_t wanted = 0;
};

struct OpenRequest {
  Request request;
  uint64_t id = 0;
  uint32_t stream = 0;  // that it was given to
  int64_t rows = 1;
  std::string shape;  // requests that have the same may share a run; empty: with no other
  uint64_t submitted_ns = 0;
  uint64_t queue_until_ns = 0;  // it is not to wait longer; 0 = it may
  bool cancelled = false;       // by its id
  SharedRun* run = nullptr;     // null while it waits
  Status no_memory;             // the answer where there is no memory for another one

  uint64_t waits_until_ns() const {
    const uint64_t deadline = request.deadline_ns;
    if (!deadline || !queue_until_ns) return deadline | queue_until_ns;
    return deadline < queue_until_ns ? deadline : queue_until_ns;
  }
  // Cancels it by its id; the run that it is in ends where nobody else wants it.
  void cancel() {
    if (cancelled) return;
    cancelled = true;
    if (run && --run->wanted == 0) __atomic_store_n(&run->stop, 1u, __ATOMIC_RELEASE);
  }
  // Why its result is not to be given, or, while it |waits|, why it is not to run.
  Status ended(uint64_t now, bool waits) const {
    if (cancelled || raised(request.cancel))
      return error(Code::kCANCELLED, "a request: cancelled by the caller");
    if (request.deadline_ns && now >= request.deadline_ns)
      return error(Code::kDEADLINE, "a request: its deadline has passed",
                   waits ? " while it waited" : "");
    if (waits && queue_until_ns && now >= queue_until_ns)
      return error(
          Code::kDEADLINE, "a request: it has waited ", (now - submitted_ns) / 1'000'000,
          " ms, longer than queue_timeout_ms allows; submit fewer at a time, or allow more");
    return {};
  }
};

using OpenRequestPtr = std::unique_ptr<OpenRequest>;

}  // namespace pfrt
