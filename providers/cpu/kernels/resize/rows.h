// SPDX-License-Identifier: Apache-2.0
//
// Resize's loops over a plan, and the make functions of the resampling family's table. Pure
// functions; thread-safe.
#pragma once

#include <string>

#include "providers/cpu/kernels/resize/plan.h"
#include "providers/cpu/row/convert.h"
#include "providers/cpu/row/row.h"

namespace pfrt::cpu {

// The loop of kNearest: moves elements, whatever their type.
void resize_nearest(const Run& run, const ResizeForm& form, const ResizePlan& plan);
// The loop of the other modes, and a worker's scratch for it.
void resize_weighted(const Run& run, const ResizeForm& form, const ResizePlan& plan);
uint64_t weighted_scratch(const ResizeForm& form);

// write_block for weighted sums. Integers drop their fraction; before that a little is added, in
// case the weights add up to slightly less than 1.
template <typename T>
void write_sums(pfrt_dtype dtype, void* base, int64_t first, int64_t n, T* placed) {
  if (dtype_is_integer(dtype)) {
    constexpr T kLost = T{1} / 1024;
    for (int64_t i = 0; i < n; ++i) placed[i] += placed[i] < T{0} ? -kLost : kLost;
  }
  write_block(dtype, base, first, n, placed);
}

Result<Kernel> make_grid_sample(const KernelRequest& node);
std::string refuse_grid_sample(const KernelRequest& node);
Result<Kernel> make_affine_grid(const KernelRequest& node);

}  // namespace pfrt::cpu
