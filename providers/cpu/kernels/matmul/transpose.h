// SPDX-License-Identifier: Apache-2.0
//
// Rows of elements to contiguous columns, as a matmul reads its panels. Pure; thread-safe.
#pragma once

#include <cstdint>

namespace pfrt::cpu {

// out[k * width + j] = in[j * stride + k] for j < count, k < n; nothing else is written.
void transpose(const float* in, int64_t stride, int64_t count, int64_t n, float* out,
               int64_t width);

}  // namespace pfrt::cpu
