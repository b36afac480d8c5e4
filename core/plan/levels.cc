// SPDX-License-Identifier: Apache-2.0
#include "core/plan/levels.h"

#include <algorithm>
#include <unordered_map>

namespace pfrt {

std::vector<uint32_t> levels(const std::vector<StepUse>& steps) {
  // These are the first levels after the last write, and after the last use.
  struct Next {
    uint32_t written = 0, used = 0;
  };
  std::unordered_map<uint32_t, Next> next;
  std::vector<uint32_t> out;
  for (const StepUse& step : steps) {
    uint32_t level = 0;
    for (uint32_t r : step.reads) level = std::max(level, next[r].written);
    for (uint32_t w : step.writes) level = std::max(level, next[w].used);
    out.push_back(level);
    for (uint32_t r : step.reads) next[r].used = std::max(next[r].used, level + 1);
    for (uint32_t w : step.writes) next[w] = {level + 1, level + 1};
  }
  return out;
}

}  // namespace pfrt
