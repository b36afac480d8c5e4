// SPDX-License-Identifier: Apache-2.0
//
// The innermost loops of a matmul: a few rows of A times a panel of B, sums held in registers.
// Every element is one chain of multiply-adds over k, whatever the number of rows or columns
// computed with it; where k is contiguous in both factors it is the sum of several chains. Pure
// functions; thread-safe.
#pragma once

#include <cstdint>

namespace pfrt::cpu {

// c[r * ldc + j] (+)= sum over k < kn of a[k * rows + r] * b[k * ldb + j].
template <typename T>
using MicroFn = void (*)(int64_t kn, const T* a, const T* b, int64_t ldb, T* c, int64_t ldc,
                         bool accumulate);

// c[r * ldc + j] (+)= sum over k < kn of a[r * lda + k] * b[j * ldb + k], for a few r and j. Each
// sum is as many chains as a vector has elements.
using DotFn = void (*)(int64_t kn, const float* a, int64_t lda, const float* b, int64_t ldb,
                       float* c, int64_t ldc, bool accumulate);

struct DotKernels {
  static constexpr int64_t kMaxRows = 4;
  int64_t cols[kMaxRows];  // of |wide|, by rows - 1
  DotFn wide[kMaxRows];    // null where there are none
  DotFn one[kMaxRows];     // one column
};
const DotKernels& dot_kernels();

// c[r * ldc + j] = sum over k < kn of a[k * rows + r] * b[k * ldb + j] for j < n. Rows of |b| are
// read a few at a time from end to end, so that the processor reads ahead of them.
using LinesFn = void (*)(int64_t kn, const float* a, const float* b, int64_t ldb, int64_t n,
                         float* c, int64_t ldc);

struct LineKernels {
  static constexpr int64_t kMaxRows = 4;
  LinesFn rows[kMaxRows];  // by rows - 1; null where there are none
};
const LineKernels& line_kernels();

template <typename T>
struct MicroKernels {
  static constexpr int64_t kMaxRows = 12;
  int64_t rows;       // most rows of a call
  int64_t cols;       // columns of a full panel
  int64_t half_cols;  // columns of a narrow panel, for the right edge
  int64_t wide_cols;  // columns of a call that reads B in place, for up to |wide_rows| rows
  int64_t wide_rows;
  MicroFn<T> full[kMaxRows];  // by rows - 1
  MicroFn<T> half[kMaxRows];
  MicroFn<T> wide[kMaxRows];
};

// The microkernels for float, double, uint32_t or uint64_t, by the instruction set in use.
template <typename T>
const MicroKernels<T>& micro_kernels();

}  // namespace pfrt::cpu
