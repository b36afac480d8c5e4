// SPDX-License-Identifier: Apache-2.0
#include "core/environment/pressure_watch.h"

#include "core/base/os/cpu.h"
#include "core/base/status.h"

namespace pfrt {
namespace {

constexpr uint64_t kEvery = 250'000'000;   // nanoseconds
constexpr uint64_t kRest = 5'000'000'000;  // after there was nothing to give back
constexpr uint64_t kShort = uint64_t{128} << 20;
constexpr double kStalled = 20;  // percent of the last ten seconds in which something waited

}  // namespace

std::string PressureWatch::look() {
  const uint64_t now = os::recent_ns();
  uint64_t next = next_ns_.load(std::memory_order_relaxed);
  if (now < next || !next_ns_.compare_exchange_strong(next, now + kEvery)) return {};
  if (const uint64_t room = os::available_memory(root_); room && room < kShort)
    return message(room, " bytes of memory are left to this process");
  if (const double percent = os::memory_stalled(root_); percent >= kStalled)
    return message("for ", percent, "% of the last ten seconds something waited for memory");
  return {};
}

void PressureWatch::rest() { next_ns_.store(os::recent_ns() + kRest); }

}  // namespace pfrt
