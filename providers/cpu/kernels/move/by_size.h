// SPDX-License-Identifier: Apache-2.0
//
// Loops over single elements, one for each size of an element and each type of an index.
#pragma once

#include <cstdint>

namespace pfrt::cpu {

// Calls fn(E{}, I{}), where E is an integer of |bytes| bytes and I the type of the indices. False,
// without a call, where there is no such integer.
template <typename Fn>
bool by_size(int64_t bytes, bool wide_indices, Fn&& fn) {
  const auto with_index = [&](auto element) {
    wide_indices ? fn(element, int64_t{}) : fn(element, int32_t{});
    return true;
  };
  if (bytes == 1) return with_index(uint8_t{});
  if (bytes == 2) return with_index(uint16_t{});
  if (bytes == 4) return with_index(uint32_t{});
  return bytes == 8 && with_index(uint64_t{});
}

// The position on an axis of |size| that |index| means, which is in [-size, size).
inline int64_t from_end(int64_t index, int64_t size) { return index < 0 ? index + size : index; }

}  // namespace pfrt::cpu
