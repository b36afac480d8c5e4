// SPDX-License-Identifier: Apache-2.0
#include "core/plan/blocks.h"

#include <algorithm>
#include <numeric>

namespace pfrt {

uint64_t place(std::vector<BlockItem>& items) {
  std::vector<size_t> by_size(items.size());
  std::iota(by_size.begin(), by_size.end(), size_t{0});
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](size_t a, size_t b) { return items[a].bytes > items[b].bytes; });
  std::vector<size_t> placed;  // in offset order
  uint64_t total = 0;
  for (size_t i : by_size) {
    BlockItem& item = items[i];
    if (item.bytes > (uint64_t{1} << 60)) return UINT64_MAX;
    uint64_t offset = 0;
    for (size_t p : placed) {
      const BlockItem& other = items[p];
      if (other.last < item.first || item.last < other.first) continue;
      if (offset + item.bytes <= other.offset) break;
      offset = std::max(offset, (other.offset + other.bytes + item.alignment - 1) / item.alignment *
                                    item.alignment);
    }
    item.offset = offset;
    total = std::max(total, offset + item.bytes);
    if (total > (uint64_t{1} << 61)) return UINT64_MAX;
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), i,
                         [&](size_t a, size_t b) { return items[a].offset < items[b].offset; }),
        i);
  }
  return total;
}

}  // namespace pfrt
