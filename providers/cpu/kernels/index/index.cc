// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/index/index.h"

#include <vector>

#include "providers/cpu/kernels/index/rows.h"

namespace pfrt::cpu {

std::span<const KernelRow> index_kernels() {
  // Never freed: rows are used until the process ends.
  static const auto* const rows = [] {
    auto* all = new std::vector<KernelRow>;
    for (const auto part :
         {shape_rows(), fill_rows(), gathering_rows(), unique_rows(), suppression_rows()})
      all->insert(all->end(), part.begin(), part.end());
    return all;
  }();
  return *rows;
}

}  // namespace pfrt::cpu
