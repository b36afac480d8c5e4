// SPDX-License-Identifier: Apache-2.0
//
// Which steps may run at once: a step's level is one more than the highest of those it has to wait
// for, so the steps of one level are independent of each other. Pure; thread-safe.
#pragma once

#include <cstdint>
#include <vector>

namespace pfrt {

// Numbers of what a step reads and writes.
struct StepUse {
  std::vector<uint32_t> reads, writes;
};

// |steps| in an order that is right when they run one after another.
std::vector<uint32_t> levels(const std::vector<StepUse>& steps);

}  // namespace pfrt
