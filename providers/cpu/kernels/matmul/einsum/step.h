// SPDX-License-Identifier: Apache-2.0
//
// A step of an Einsum, as a batch of matmuls. Labels that both operands and the result have are the
// batch; labels of the result that one operand has are rows or columns; the others are summed over.
// Where matmuls would be tiny, lines of the result are computed instead. Labels whose strides fit
// together are one axis. Immutable once made; thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "providers/cpu/kernels/matmul/einsum/path.h"
#include "providers/cpu/kernels/matmul/gemm.h"

namespace pfrt::cpu {

// Positions in operand a, operand b and the result.
using EinsumOffsets = std::array<int64_t, 3>;

// Labels of one role, the last one fastest.
class EinsumAxes {
 public:
  void add(int64_t size, const EinsumOffsets& steps);
  int64_t count() const { return count_; }
  EinsumOffsets at(int64_t index) const;
  // Number of positions from |index| on, itself included, that are steps of the fastest axis.
  int64_t run(int64_t index) const;
  // Steps of the fastest axis.
  EinsumOffsets step() const;
  // Removes the fastest axis and gives its size.
  int64_t pop();
  // Whether all positions are a start and multiples of one step.
  bool even() const { return axes_.size() <= 1; }

 private:
  struct Axis {
    int64_t size;
    EinsumOffsets steps;
  };
  std::vector<Axis> axes_;
  int64_t count_ = 1;
};

// Memory and type of a step's operand or result.
struct EinsumPlace {
  void* data;
  pfrt_dtype dtype;
};

template <typename T>
class EinsumMatMul {
 public:
  EinsumMatMul(const EinsumStep& step, const std::vector<int64_t>& sizes);
  uint64_t scratch_bytes() const;
  double flops() const;
  // |b| is ignored where the step has one operand.
  void run(const Run& run, const EinsumPlace& a, const EinsumPlace& b,
           const EinsumPlace& out) const;

 private:
  void multiply(const Run& run, const EinsumPlace& a, const EinsumPlace& b,
                const EinsumPlace& out) const;
  void by_lines(const Run& run, const EinsumPlace& a, const EinsumPlace& b,
                const EinsumPlace& out) const;
  void line(const Run& run, const EinsumPlace& a, const EinsumPlace& b, const EinsumPlace& out,
            const EinsumOffsets& start, int64_t n) const;
  void factors(const EinsumPlace& from, size_t which, int64_t offset, int64_t n, T* to) const;

  bool two_, swapped_ = false;
  EinsumAxes batch_, rows_, cols_, depth_;
  // With |lines_| the result is computed by lines: |outer_| has its axes without the fastest, and
  // |line_| is the size of that one.
  bool lines_ = false;
  EinsumAxes outer_;
  int64_t line_ = 1;
  EinsumOffsets line_step_{};
  Gemm<T> gemm_;
};

}  // namespace pfrt::cpu
