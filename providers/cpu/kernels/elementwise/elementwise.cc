// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/elementwise/elementwise.h"

#include <vector>

#include "providers/cpu/kernels/elementwise/rows.h"

namespace pfrt::cpu {

std::span<const KernelRow> elementwise_kernels() {
  // Never freed: rows are used until the process ends.
  static const auto* const rows = [] {
    auto* all = new std::vector<KernelRow>;
    for (const auto part :
         {unary_rows(), activation_rows(), binary_rows(), variadic_rows(), select_rows()})
      all->insert(all->end(), part.begin(), part.end());
    return all;
  }();
  return *rows;
}

}  // namespace pfrt::cpu
