// SPDX-License-Identifier: Apache-2.0
//
// Places buffers with lifetimes into one block of memory, so that those that live at the same time
// do not overlap. Greedy by size, largest first, at the lowest free offset (as in "Efficient Memory
// Management for Deep Neural Net Inference", Pisarchyk and Lee, 2020). Pure; thread-safe.
#pragma once

#include <cstdint>
#include <vector>

namespace pfrt {

struct BlockItem {
  uint64_t bytes = 0;
  uint64_t alignment = 64;
  uint32_t first = 0, last = 0;  // steps, inclusive
  uint64_t offset = 0;           // set by place
};

// Returns the bytes of the block; UINT64_MAX when the sum overflows.
uint64_t place(std::vector<BlockItem>& items);

}  // namespace pfrt
