// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/reduce/reduce.h"

#include <vector>

#include "providers/cpu/kernels/reduce/rows.h"

namespace pfrt::cpu {

std::span<const KernelRow> reduce_kernels() {
  // Never freed: rows are used until the process ends.
  static const auto* const rows = [] {
    auto* all = new std::vector<KernelRow>;
    for (const auto part : {fold_rows(), arg_rows(), cum_sum_rows(), top_k_rows()})
      all->insert(all->end(), part.begin(), part.end());
    return all;
  }();
  return *rows;
}

}  // namespace pfrt::cpu
