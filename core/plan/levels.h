// SPDX-License-Identifier: Apache-2.0
//
// Finds steps that may run at once: a step's level is one more than the highest level it has to
// wait for, so the steps of one level are independent of each other. Pure; thread-safe.
#pragma once

#include <cstdint>
#include <vector>

namespace pfrt {

// Numbers of the values that a step reads and writes.
struct StepUse {
  std::vector<uint32_t> reads, writes;
};

// |steps| are in an order in which they may run one after another.
std::vector<uint32_t> levels(const std::vector<StepUse>& steps);

}  // namespace pfrt
