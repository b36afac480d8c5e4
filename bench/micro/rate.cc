// SPDX-License-Identifier: Apache-2.0
#include "bench/micro/rate.h"

#include <chrono>

#include "providers/cpu/jit/peak_loops.h"
#include "providers/cpu/measure/data.h"

namespace micro {
namespace {

using pfrt::cpu::PeakLoop;
using pfrt::cpu::PeakLoops;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double seconds_of(const PeakLoop& loop, pfrt::cpu::MeasureData& data, int64_t bytes) {
  constexpr double kLeast = 0.005;
  int64_t blocks = 0;
  const double start = now();
  double seconds = 0;
  do {
    constexpr int64_t kTurn = 20000;
    data.go_through(loop, bytes, kTurn);
    blocks += kTurn;
    seconds = now() - start;
  } while (seconds < kLeast);
  return seconds / static_cast<double>(blocks);
}

}  // namespace

Rate Rate::now() {
  static const auto loops = PeakLoops::make(pfrt::cpu::isa(), false);
  static pfrt::cpu::MeasureData data;
  Rate rate;
  if (!loops.ok()) return rate;
  const auto measured = [&](PeakLoops::Kind kind) {
    constexpr int64_t kNear = 16 << 10;  // stays in the first-level cache
    const PeakLoop* const loop = loops.value()->find(kind);
    if (loop == nullptr || !data.fill(loop->data, kNear)) return 0.0;
    return static_cast<double>(loop->work) / seconds_of(*loop, data, kNear) / 1e9;
  };
  rate.gflops = measured(PeakLoops::kFma);
  rate.gbs = measured(PeakLoops::kRead);
  return rate;
}

}  // namespace micro
