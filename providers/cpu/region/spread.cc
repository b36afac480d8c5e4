// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/region/spread.h"

#include <vector>

#include "core/base/dtype.h"

namespace pfrt::cpu {

Dims without_leading_ones(Dims dims) {
  while (!dims.empty() && dims.front() == 1) dims = dims.subspan(1);
  return dims;
}

std::optional<Spread> spread(Dims own, Dims whole) {
  own = without_leading_ones(own);
  whole = without_leading_ones(whole);
  if (own.size() > whole.size()) return {};
  std::vector<int64_t> before, block, after;  // of the whole: where |own| has 1, has it, has 1
  for (size_t left = whole.size(); left-- > 0;) {
    const size_t lead = whole.size() - own.size();
    const int64_t mine = left < lead ? 1 : own[left - lead], all = whole[left];
    if (mine == 1 && all == 1) continue;
    if (mine != 1 && (mine != all || !before.empty())) return {};
    (mine != 1 ? block : block.empty() ? after : before).push_back(all);
  }
  return Spread{.each = after.empty(),
                .whole = after.empty() && before.empty(),
                .inner = element_count(after.data(), after.size()),
                .period = element_count(block.data(), block.size())};
}

}  // namespace pfrt::cpu
