// SPDX-License-Identifier: Apache-2.0
//
// The indices that a start, an end and a step of Slice take of a dimension. Pure; thread-safe.
#pragma once

#include <cstdint>

#include "core/base/status.h"

namespace pfrt::cpu {

// Elements start, start + step, ...; |start| is an element of the dimension where |count| > 0.
struct SliceRange {
  int64_t start, count, step;
};

// Takes a dimension of |size|; returns an error when the step is 0.
Result<SliceRange> slice_range(int64_t start, int64_t end, int64_t step, int64_t size);

}  // namespace pfrt::cpu
