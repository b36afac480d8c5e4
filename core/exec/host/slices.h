// SPDX-License-Identifier: Apache-2.0
//
// Slices of tensors along an axis, and tensors of slices, for Scan, Loop and sequences: any element
// type, sub-byte ones and strings included. They end with the run's status once it is to stop.
// Thread-safe on different values.
#pragma once

#include <span>
#include <vector>

#include "core/exec/run/run_types.h"

namespace pfrt {

// Elements [begin, begin + length) of |axis|. Shares the bytes of |from| where they lie together.
Result<Tensor> slice(const RunControl& control, const Tensor& from, size_t axis, int64_t begin,
                     int64_t length);
// Likewise, without the axis.
Result<Tensor> slice_at(const RunControl& control, const Tensor& from, size_t axis, int64_t index);

// |parts| one after another along |axis|: of one type, and alike in all other dimensions.
Result<Tensor> concat(const RunControl& control, std::span<const Tensor> parts, size_t axis);

// Slices of one shape that come one at a time and become one tensor with a new axis.
class Stack {
 public:
  // |count| slices are expected, or -1; |back|: the last one comes first.
  Stack(int64_t count, int64_t axis, bool back) : count_(count), axis_(axis), back_(back) {}

  // Where the next slice would best be made, if anywhere.
  OutputRequest target() const;
  Status add(const Value& slice);
  // |like| gives type and dimensions of a slice when there are none; what is not known is 0.
  Result<Tensor> finish(const RunControl& control, const Type& like);

 private:
  int64_t row() const {
    const int64_t at = static_cast<int64_t>(added_);
    return back_ ? count_ - 1 - at : at;
  }

  int64_t count_, axis_;
  bool back_;
  size_t added_ = 0;
  Tensor whole_;  // with the new axis first, when count and slices allow to know it beforehand
  std::vector<Tensor> slices_;
};

}  // namespace pfrt
