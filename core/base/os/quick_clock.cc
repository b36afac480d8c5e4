// SPDX-License-Identifier: Apache-2.0
#include "core/base/os/quick_clock.h"

#include <algorithm>
#include <atomic>
#include <fstream>
#include <string>

#include "core/base/os/cpu.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace pfrt::os {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed, kAcquire = std::memory_order_acquire,
               kRelease = std::memory_order_release;
constexpr uint64_t kLeast = 1'000'000;      // nanoseconds over which ticks are counted first
constexpr uint64_t kMost = 100'000'000;     // until the clocks are compared again
constexpr uint64_t kMostReading = 2000;     // ticks; more mean an interruption
constexpr uint64_t kAnew = 10'000'000'000;  // the system's own rate changes slowly

uint64_t ticks() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return 0;
#endif
}

// Whether the counter runs at one rate, and alike on all processors: otherwise the system does not
// use it.
bool counts_by_ticks() {
#if defined(__x86_64__)
  std::string source;
  std::ifstream("/sys/devices/system/clocksource/clocksource0/current_clocksource") >> source;
  return source == "tsc";
#else
  return false;
#endif
}

// Read under a sequence number that is odd during a write. Nobody waits for anybody, so that a fork
// cannot make anybody wait.
struct alignas(64) Anchor {
  std::atomic<uint32_t> sequence{0};
  std::atomic<uint64_t> ticks{0}, ns{0};
  std::atomic<uint64_t> valid{0};  // ticks from there on
  std::atomic<uint64_t> rate{0};   // nanoseconds of 2^32 ticks
  uint64_t first_ticks = 0, first_ns = 0;
} anchor;

uint64_t passed_ns(uint64_t passed, uint64_t rate) { return passed * rate >> 32; }

// Compares the clocks. The rate between two comparisons is the more exact the further they are
// apart, so each is valid as long as all before it took.
uint64_t compare() {
  const uint64_t before = ticks();
  const uint64_t now_ns = monotonic_ns();
  const uint64_t reading = ticks() - before, now = before + reading / 2;
  uint32_t sequence = anchor.sequence.load(kRelaxed);
  if (reading > kMostReading || (sequence & 1) != 0 ||
      !anchor.sequence.compare_exchange_strong(sequence, sequence + 1, kAcquire))
    return now_ns;
  const uint64_t counted = now - anchor.first_ticks, counted_ns = now_ns - anchor.first_ns;
  const double rate = static_cast<double>(counted_ns) / static_cast<double>(counted) * 0x1p32;
  const bool plausible = rate > 0x1p27 && rate < 0x1p35;  // 1/32 to 8 ns a tick
  uint64_t valid = 0;
  if (anchor.first_ns != 0 && counted_ns >= kLeast && plausible) {
    valid = static_cast<uint64_t>(static_cast<double>(std::min(counted_ns, kMost)) * 0x1p32 / rate);
    anchor.rate.store(static_cast<uint64_t>(rate), kRelease);
  }
  if (anchor.first_ns == 0 || counted_ns > kAnew || (counted_ns >= kLeast && !plausible)) {
    anchor.first_ticks = now;
    anchor.first_ns = now_ns;
  }
  anchor.ticks.store(now, kRelease);
  anchor.ns.store(now_ns, kRelease);
  anchor.valid.store(valid, kRelease);
  anchor.sequence.store(sequence + 2, kRelease);
  return now_ns;
}

}  // namespace

uint64_t quick_ns() {
  static const bool usable = counts_by_ticks();
  if (!usable) return monotonic_ns();
  const uint32_t sequence = anchor.sequence.load(kAcquire);
  const uint64_t passed = ticks() - anchor.ticks.load(kAcquire);
  const uint64_t valid = anchor.valid.load(kAcquire);
  const uint64_t ns = anchor.ns.load(kAcquire) + passed_ns(passed, anchor.rate.load(kAcquire));
  if (passed >= valid || (sequence & 1) != 0 || anchor.sequence.load(kRelaxed) != sequence)
    return compare();
  return ns;
}

}  // namespace pfrt::os
