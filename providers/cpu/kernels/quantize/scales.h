// SPDX-License-Identifier: Apache-2.0
//
// The scale and zero point of each element: one for the tensor, one for each index of the axis, or
// one for each block along it. Immutable; thread-safe.
#pragma once

#include <cstdint>

#include "providers/cpu/kernel/run.h"

namespace pfrt::cpu {

class Scales {
 public:
  // Makes the scales of a QuantizeLinear or DequantizeLinear: the tensor is input 0, scales are
  // input 1, zero points (optional) input 2.
  static Result<Scales> make(const SnapshotNode& node);

  // Every element has the same.
  bool uniform() const { return kind_ == Kind::kTensor; }
  // Scales of elements [first, first + n), |n| at most kBlock.
  template <typename T>
  void load_scales(const Run& run, int64_t first, int64_t n, T* out) const;
  // Zero points, 0 where there are none. T is float or double, as above.
  template <typename T>
  void load_zeros(const Run& run, int64_t first, int64_t n, T* out) const;

 private:
  enum class Kind : uint8_t { kTensor, kAxis, kBlocks };
  // Elements whose parameters are contiguous (step 1) or the same one (step 0).
  struct Stretch {
    int64_t at, step, length;
  };
  Stretch stretch(int64_t element) const;
  template <typename T>
  void load(pfrt_dtype dtype, const void* parameters, int64_t first, int64_t n, T* out) const;

  Kind kind_ = Kind::kTensor;
  int64_t length_ = 1, inner_ = 1;  // the tensor is [outer, length, inner]
  int64_t block_ = 1, blocks_ = 1;  // elements of the axis a block, blocks of the axis
  pfrt_dtype scale_dtype_ = PFRT_DTYPE_UNSET, zero_dtype_ = PFRT_DTYPE_UNSET;
};

}  // namespace pfrt::cpu
