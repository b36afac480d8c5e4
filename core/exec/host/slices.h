// SPDX-License-Identifier: Apache-2.0
//
// Slices of tensors along an axis, and tensors of slices, for Scan, Loop and sequences: any element
// type, sub-byte ones and strings included. The functions end with the run's status once it is to
// stop. Thread-safe on different values.
#pragma once

#include <span>
#include <vector>

#include "core/exec/run/run_types.h"

namespace pfrt {

// Elements [begin, begin + length) of |axis|. Shares the bytes of |from| where they are contiguous.
Result<Tensor> slice(const RunControl& control, const Tensor& from, size_t axis, int64_t begin,
                     int64_t length);
// Element |index| of |axis|, without the axis.
Result<Tensor> slice_at(const RunControl& control, const Tensor& from, size_t axis, int64_t index);

// Joins |parts| along |axis|. They have one type, and equal other dimensions.
Result<Tensor> concat(const RunControl& control, std::span<const Tensor> parts, size_t axis);

// Joins slices of one shape, which come one at a time, along a new axis.
class Stack {
 public:
  // |count| slices are expected, or -1 if unknown; |back|: the last one comes first.
  Stack(int64_t count, int64_t axis, bool back) : count_(count), axis_(axis), back_(back) {}

  // Memory for the next slice, if any is known.
  OutputRequest target() const;
  Status add(const Value& slice);
  // |like| gives type and dimensions of a slice when there are none; unknown dimensions are 0.
  Result<Tensor> finish(const RunControl& control, const Type& like);

 private:
  int64_t row() const {
    const int64_t at = static_cast<int64_t>(added_);
    return back_ ? count_ - 1 - at : at;
  }

  int64_t count_, axis_;
  bool back_;
  size_t added_ = 0;
  Tensor whole_;  // with the new axis first, where count and slices tell its size in advance
  std::vector<Tensor> slices_;
};

}  // namespace pfrt
