// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/loop/broadcast_pattern.h"

#include "core/base/dtype.h"

namespace pfrt::cpu {

Dims without_leading_ones(Dims dims) {
  while (!dims.empty() && dims.front() == 1) dims = dims.subspan(1);
  return dims;
}

std::vector<int64_t> with_ones(Dims dims, uint32_t ones) {
  std::vector<int64_t> out(dims.begin(), dims.end());
  out.resize(out.size() + ones, 1);
  return out;
}

std::optional<BroadcastPattern> broadcast_pattern(Dims own, Dims whole) {
  own = without_leading_ones(own);
  whole = without_leading_ones(whole);
  if (own.size() > whole.size()) return {};
  std::vector<int64_t> run;  // of the whole
  bool each = true, all_alike = true;
  for (size_t left = whole.size(); left-- > 0;) {
    const size_t lead = whole.size() - own.size();
    const int64_t mine = left < lead ? 1 : own[left - lead], all = whole[left];
    if (mine == 1 && all == 1) continue;
    if (mine != 1 && mine != all) return {};
    if (run.empty()) each = mine != 1;
    all_alike &= each == (mine != 1);
    if (all_alike) run.push_back(all);
  }
  return BroadcastPattern{
      .each = each, .whole = each && all_alike, .run = element_count(run.data(), run.size())};
}

}  // namespace pfrt::cpu
