// SPDX-License-Identifier: Apache-2.0
//
// ReduceX of float32, float16 and bfloat16 by vectors: outputs in tiles, long reductions in chunks
// whose results are joined in order. What each output adds up, and in which order, depends on the
// reduced dimensions and those after them, neither on the others nor on the number of threads.
// Immutable; thread-safe.
#pragma once

#include "providers/cpu/kernel/run.h"
#include "providers/cpu/kernels/reduce/plan.h"
#include "providers/cpu/kernels/reduce/vectors.h"

namespace pfrt::cpu {

// The plan and data of one run.
struct ReduceJob {
  const ReducePlan* plan;
  pfrt_dtype dtype;
  const void* x;
};

struct FloatReduction {
  enum class Finish : uint8_t { kNone, kNegative, kMean, kRoot, kLog };
  // Reduces elements [begin, end) of outputs [first, first + count) in double, to |acc|.
  using ExactFn = void (*)(const ReduceJob& job, int64_t first, int64_t count, int64_t begin,
                           int64_t end, const double* shift, double* acc);

  const VectorReduction* vectors;
  uint32_t mask;
  Finish finish;
  // Makes again what float32 has not enough range for: results that are not finite, or less than
  // |least| times the number of elements. Null where float32 is exact.
  ExactFn exact;
  double least;
};

// Outputs that are reduced together; |exact| is called for no more.
inline constexpr int64_t kReduceTile = 512;

uint64_t float_reduction_scratch(pfrt_dtype dtype);  // bytes a worker
void reduce_floats(const Run& run, const ReduceJob& job, const FloatReduction& form);

}  // namespace pfrt::cpu
