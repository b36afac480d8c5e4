// SPDX-License-Identifier: Apache-2.0
//
// A Resize node with its sizes known: which axes change and how. Neighbouring axes that do not
// change are merged. Immutable once made; thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "providers/cpu/kernels/resize/across.h"
#include "providers/cpu/kernels/resize/taps.h"

namespace pfrt::cpu {

// The tensor is [axes..., inner]; the last axis changes. Without axes it is copied.
struct ResizePlan {
  struct Axis {
    int64_t in, out, stride;  // stride in elements of the input
    Taps taps;                // count 0: the axis does not change
  };
  // Coordinates of a row, an index into the first |outer| axes of the output.
  void locate(int64_t row, size_t outer, int64_t* at) const;
  // A coordinate is extrapolated.
  bool outside(const int64_t* at, size_t outer) const;

  std::vector<Axis> axes;
  int64_t inner = 1;
  Across across;  // of the last axis, where vectors want it
};
inline constexpr size_t kMostAxes = 16;

// The part of a plan that is known without the contents of scales, sizes and roi.
class ResizeForm {
 public:
  static Result<ResizeForm> make(const SnapshotNode& node);

  // The contents the plan needs are constants of |node|.
  bool constant(const SnapshotNode& node) const;
  // |scales|, |sizes| and |roi| are the contents of inputs 2, 3 and 1 where needed.
  Result<ResizePlan> plan(const float* scales, const int64_t* sizes, const void* roi) const;
  bool needs_scales() const { return !by_sizes_; }
  bool needs_sizes() const { return by_sizes_ && policy_ != Policy::kStretch; }
  bool needs_roi() const { return sampling_.transform == Transform::kCropAndResize; }

  const Sampling& sampling() const { return sampling_; }
  pfrt_dtype dtype() const { return dtype_; }
  int64_t in_elements() const { return element_count(in_.data(), in_.size()); }
  int64_t out_elements() const { return element_count(out_.data(), out_.size()); }
  double extrapolation() const { return extrapolation_; }
  // Elements of the longest line of the input, or of the output, along an axis with fewer than
  // |inner| elements inside it.
  int64_t longest_line(int64_t inner) const { return longest(in_, inner); }
  int64_t longest_output_line(int64_t inner) const { return longest(out_, inner); }

 private:
  enum class Policy : uint8_t { kStretch, kNotLarger, kNotSmaller };
  Status check_axes(const SnapshotNode& node);
  int64_t longest(const std::vector<int64_t>& dims, int64_t inner) const;
  Result<std::vector<AxisSizes>> sizes_of(const float* scales, const int64_t* sizes,
                                          const void* roi) const;

  Sampling sampling_;
  Policy policy_ = Policy::kStretch;
  pfrt_dtype dtype_ = PFRT_DTYPE_UNSET, roi_dtype_ = PFRT_DTYPE_UNSET;
  bool by_sizes_ = false;
  double extrapolation_ = 0;
  std::vector<int64_t> in_, out_;
  std::vector<size_t> axes_;
};

}  // namespace pfrt::cpu
