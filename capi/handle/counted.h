// SPDX-License-Identifier: Apache-2.0
//
// Handles that are counted: the last release deletes one.
#pragma once

#include <atomic>
#include <cstdint>

#include "capi/handle/alive.h"
#include "core/base/os/fork.h"

namespace pfrt::capi {

class Counted {
 public:
  void retain() { refs_.fetch_add(1, std::memory_order_relaxed); }
  bool shared() const { return refs_.load(std::memory_order_acquire) > 1; }
  bool drop() { return refs_.fetch_sub(1, std::memory_order_acq_rel) == 1; }

 private:
  std::atomic<uint32_t> refs_{1};
  [[no_unique_address]] Alive alive_;
};

template <typename Handle>
void retain(Handle* handle) {
  if (handle) handle->retain();
}

template <typename Handle>
void release(Handle* handle) {
  if (!handle || !handle->drop()) return;
  const Inside inside;
  const os::ForkScope scope;
  delete handle;
}

}  // namespace pfrt::capi
