// SPDX-License-Identifier: Apache-2.0
//
// The order in which a reduction reads its input. Dimensions are either kept (they number the
// outputs) or reduced; neighbours of one kind are merged. Immutable; thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/status.h"

namespace pfrt::cpu {

// Axes of one kind, innermost first, with their strides in the input.
struct Axes {
  std::vector<int64_t> extents, strides;
  int64_t count = 1;  // product of extents

  void push(int64_t extent, int64_t stride);
  // Input offset of element |i| in row-major order.
  int64_t offset(int64_t i) const;
};

struct ReducePlan {
  Axes kept, reduced;
  // The innermost dimension is kept: neighbouring outputs are neighbours in the input.
  bool columns = false;

  // |axes| may count from the end; repeated ones count once. No axes reduce nothing, or all when
  // |all_if_empty|.
  static Result<ReducePlan> make(std::span<const int64_t> dims, std::span<const int64_t> axes,
                                 bool all_if_empty);
};

}  // namespace pfrt::cpu
