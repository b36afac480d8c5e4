// SPDX-License-Identifier: Apache-2.0
//
// A state is made by pairs: each says which output of a run is which input of the next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace pfrt {

// An output, and the input that it becomes in the next run. The value grows along |axis|, or is a
// cache with room to write into (kInPlace).
struct StatePair {
  enum class Growth { kByNames, kNone, kAlong, kInPlace };  // kByNames: as names and graph tell
  std::string input, output;
  Growth growth = Growth::kByNames;
  size_t axis = 0;
  uint64_t capacity = 0;  // the length along |axis| that there is room for; 0 = unsaid
};

}  // namespace pfrt
