// SPDX-License-Identifier: Apache-2.0
//
// Reductions of float32 elements in vectors. Sums of up to 64 elements are in float32 and are then
// added in double, so that the error does not grow with the number of elements; the order depends
// on the lengths alone. Pure functions; thread-safe.
#pragma once

#include <cstdint>

namespace pfrt::cpu {

struct VectorReduction {
  // |acc| has room for count elements, rounded up to 8; those from |count| on keep their values.
  using Fn = void (*)(const float* x, int64_t stride, int64_t n, int64_t count, uint32_t mask,
                      double* acc);
  double identity;
  // acc[j] takes x[j * stride + i] for each i < n, for j < count.
  Fn rows;
  // acc[j] takes x[i * stride + j] for each i < n, for j < count.
  Fn columns;
  // acc[j] takes other[j].
  void (*join)(double* acc, const double* other, int64_t n);
};

// These need AVX2 and FMA.
extern const VectorReduction kVectorSum;       // of elements whose bits are anded with |mask|
extern const VectorReduction kVectorSquares;   // sum of the squares
extern const VectorReduction kVectorGreatest;  // after exclusive or with |mask|; NaN where one is
extern const VectorReduction kVectorProduct;   // all in double

// Whether all of x are in [least, greatest]; NaN is not. It needs AVX2.
bool all_between(const double* x, int64_t n, double least, double greatest);

}  // namespace pfrt::cpu
