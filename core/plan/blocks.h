// SPDX-License-Identifier: Apache-2.0
//
// Places buffers with lifetimes into one block of memory, so that those that live at the same time
// do not overlap. Greedy by size, largest first, at the lowest free offset (as in "Efficient Memory
// Management for Deep Neural Net Inference", Pisarchyk and Lee, 2020), or as a client's planner
// says. Thread-safe.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace pfrt {

struct BlockItem {
  uint64_t bytes = 0;
  uint64_t alignment = 64;
  uint32_t first = 0, last = 0;  // steps, inclusive
  uint64_t offset = 0;           // set by place
  std::string_view name = {};    // for messages; may be empty
};

// Returns the bytes of the block; UINT64_MAX when the sum overflows.
uint64_t place(std::vector<BlockItem>& items);

// Places buffers as place does; called from any thread at any time.
class MemoryPlanner {
 public:
  virtual ~MemoryPlanner() = default;
  // Places the buffers of a segment of |graph| in |memory|: "host", or the provider whose device it
  // is. check_placed checks the result.
  virtual Result<uint64_t> place(std::string_view graph, std::string_view memory,
                                 std::vector<BlockItem>& items) = 0;
};

// Fails with INVALID_ARGUMENT and names of items where one lies outside of |bytes| or is not
// aligned, or two that live at the same time overlap.
Status check_placed(const std::vector<BlockItem>& items, uint64_t bytes);

}  // namespace pfrt
