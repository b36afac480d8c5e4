// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/isa/caches.h"

#include <cpuid.h>

namespace pfrt::cpu {
namespace {

// Intel's leaf and AMD's are laid out alike.
std::vector<Cache> read_leaf(uint32_t leaf) {
  constexpr uint32_t kNone = 0, kInstructions = 2, kMost = 16;
  std::vector<Cache> out;
  for (uint32_t i = 0; i < kMost; ++i) {
    uint32_t a, b, c, d;
    if (!__get_cpuid_count(leaf, i, &a, &b, &c, &d) || (a & 31) == kNone) break;
    if ((a & 31) == kInstructions) continue;
    const uint32_t level = a >> 5 & 7;
    if (level != out.size() + 1) continue;
    const int64_t ways = (b >> 22) + 1, partitions = (b >> 12 & 1023) + 1, line = (b & 4095) + 1;
    out.push_back({ways * partitions * line * (int64_t{c} + 1), (a >> 14 & 4095) + 1});
  }
  return out;
}

}  // namespace

std::vector<Cache> data_caches() {
  std::vector<Cache> caches = read_leaf(4);
  return caches.empty() ? read_leaf(0x8000001d) : caches;
}

}  // namespace pfrt::cpu
