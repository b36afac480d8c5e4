// SPDX-License-Identifier: Apache-2.0
#include "capi/handle/alive.h"

#include <atomic>
#include <cstdint>

namespace pfrt::capi {
namespace {

std::atomic<uint64_t> alive{0};
std::atomic<void*> reference{nullptr};  // the same whenever the library opens itself
std::atomic<uint64_t> held{0};          // references for what is alive
std::atomic<uint64_t> owed{0};          // references that nothing alive needs
thread_local uint32_t depth = 0;

bool take_one(std::atomic<uint64_t>& from) {
  uint64_t n = from.load();
  while (n > 0)
    if (from.compare_exchange_weak(n, n - 1)) return true;
  return false;
}

}  // namespace

Alive::Alive() noexcept {
  if (alive.fetch_add(1, std::memory_order_relaxed) > 0) return;
  if (!take_one(owed)) {
    void* const self = os::open_own_library(reinterpret_cast<const void*>(&owed_reference));
    if (!self) return;  // no memory, or no library: it is as loaded as its client keeps it
    reference.store(self);
  }
  held.fetch_add(1);
}

Alive::~Alive() {
  if (alive.fetch_sub(1) == 1 && take_one(held)) owed.fetch_add(1);
}

Inside::Inside() noexcept { ++depth; }
Inside::~Inside() { --depth; }

void* owed_reference() noexcept {
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
  return depth == 0 && take_one(owed) ? reference.load() : nullptr;
#else
  return nullptr;  // without the jump, which what sanitizers add prevents, the library stays
#endif
}

}  // namespace pfrt::capi
