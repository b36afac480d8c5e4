// SPDX-License-Identifier: Apache-2.0
//
// The loops that run a ResizePlan, and the functions that make and refuse the other kernels of the
// resampling family. Pure functions; thread-safe.
#pragma once

#include <string>

#include "providers/cpu/elements/convert.h"
#include "providers/cpu/kernel/row.h"
#include "providers/cpu/kernels/resize/plan.h"

namespace pfrt::cpu {

// The loop for mode nearest. It copies elements, so it takes every type.
void resize_nearest(const Run& run, const ResizeForm& form, const ResizePlan& plan);
// The loop for the other modes, and the bytes of scratch that it needs for each worker.
void resize_weighted(const Run& run, const ResizeForm& form, const ResizePlan& plan);
uint64_t weighted_scratch(const ResizeForm& form);
// Does that by vectors, for types whose sums are float; needs avx2.
void resize_vectors(const Run& run, const ResizeForm& form, const ResizePlan& plan);
uint64_t vectors_scratch(const ResizeForm& form);
// Whether sums of |dtype| are double.
bool sums_in_double(pfrt_dtype dtype);
inline constexpr int64_t kWide = 16;  // elements behind the last axis that make it a row

// Writes weighted sums, as write_block does. It cuts fractions off where the type is an integer.
// Weights may add up to slightly less than 1, so a little is added first: else 5 could become 4.
template <typename T>
void write_sums(pfrt_dtype dtype, void* base, int64_t first, int64_t n, T* placed) {
  if (dtype_is_integer(dtype)) {
    constexpr T kMargin = T{1} / 1024;
    for (int64_t i = 0; i < n; ++i) placed[i] += placed[i] < T{0} ? -kMargin : kMargin;
  }
  write_block(dtype, base, first, n, placed);
}

Result<Kernel> make_grid_sample(const KernelRequest& node);
Result<Kernel> make_grid_vectors(const KernelRequest& node);  // of float32; needs avx2
std::string refuse_grid_sample(const KernelRequest& node);
Result<Kernel> make_affine_grid(const KernelRequest& node);

}  // namespace pfrt::cpu
