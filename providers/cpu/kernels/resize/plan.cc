// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/resize/plan.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "providers/cpu/elements/convert.h"
#include "providers/cpu/kernel/kernel.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernel/types.h"

namespace pfrt::cpu {
namespace {

enum Input : uint32_t { kX, kRoi, kScales, kSizes };

// Checks that input |i| has a value for each axis.
Status check_list(const SnapshotNode& node, uint32_t i, pfrt_dtype dtype, size_t count) {
  if (!node.has_input(i)) return kernel_error("input ", i, " is required and absent");
  if (node.input_dtype(i) != dtype)
    return error(Code::kDTYPE_MISMATCH, "input ", i, " is ", dtype_name(node.input_dtype(i)), ": ",
                 dtype_name(dtype));
  if (node.input_rank(i) == 1 && node.input_elements(i) == static_cast<int64_t>(count)) return {};
  return kernel_error("input ", i, " has dimensions ", dims_text(node.input_dims(i)), " for ",
                      count, " axes");
}

}  // namespace

void ResizePlan::locate(int64_t row, size_t outer, int64_t* at) const {
  for (size_t i = outer; i-- > 0; row /= axes[i].out) at[i] = row % axes[i].out;
}

bool ResizePlan::outside(const int64_t* at, size_t outer) const {
  for (size_t i = 0; i < outer; ++i) {
    const std::vector<uint8_t>& flags = axes[i].taps.outside;
    if (!flags.empty() && flags[static_cast<size_t>(at[i])] != 0) return true;
  }
  return false;
}

Status ResizeForm::check_axes(const SnapshotNode& node) {
  const size_t rank = in_.size();
  std::vector<bool> given(rank);
  if (node.attr("axes") == nullptr) {
    for (size_t i = 0; i < rank; ++i) axes_.push_back(i);
    given.assign(rank, true);
  }
  for (int64_t a : node.attr_ints("axes")) {
    PFRT_ASSIGN(const int64_t axis, axis_of(a, rank));
    const size_t at = static_cast<size_t>(axis);
    if (given[at]) return kernel_error("axis ", a, " is given twice");
    given[at] = true;
    axes_.push_back(at);
  }
  for (size_t i = 0; i < rank; ++i)
    if (!given[i] && in_[i] != out_[i])
      return kernel_error("axis ", i, " is not resized but goes from ", in_[i], " to ", out_[i]);
  return {};
}

Result<ResizeForm> ResizeForm::make(const SnapshotNode& node) {
  PFRT_TRY(need(node, 1, 1));
  ResizeForm form;
  PFRT_ASSIGN(form.sampling_, Sampling::make(node));
  const auto in = node.input_dims(kX), out = node.output_dims(0);
  form.in_.assign(in.begin(), in.end());
  form.out_.assign(out.begin(), out.end());
  form.dtype_ = node.input_dtype(kX);
  form.extrapolation_ = static_cast<double>(node.attr_float("extrapolation_value", 0));
  if (in.size() != out.size())
    return kernel_error("the input has rank ", in.size(), ", the output ", out.size());
  if (node.output_dtype(0) != form.dtype_)
    return error(Code::kDTYPE_MISMATCH, "the input is ", dtype_name(form.dtype_), ", the output ",
                 dtype_name(node.output_dtype(0)));
  if (node.input_elements(kX) == 0 && node.output_elements(0) != 0)
    return kernel_error("an input of dimensions ", dims_text(in), " has nothing to make ",
                        dims_text(out), " of");
  PFRT_TRY(form.check_axes(node));

  const std::string_view policy = node.attr_string("keep_aspect_ratio_policy", "stretch");
  if (policy == "not_larger") form.policy_ = Policy::kNotLarger;
  if (policy == "not_smaller") form.policy_ = Policy::kNotSmaller;
  if (form.policy_ == Policy::kStretch && policy != "stretch")
    return kernel_error("keep_aspect_ratio_policy is '", policy,
                        "': stretch, not_larger or not_smaller");
  form.by_sizes_ = node.has_input(kSizes);
  const size_t count = form.axes_.size();
  PFRT_TRY(form.by_sizes_ ? check_list(node, kSizes, PFRT_DTYPE_INT64, count)
                          : check_list(node, kScales, PFRT_DTYPE_FLOAT32, count));
  if (form.needs_roi()) {
    form.roi_dtype_ = node.input_dtype(kRoi);
    if (!kFloats.has(form.roi_dtype_))
      return kernel_error("tf_crop_and_resize needs a roi of floats");
    PFRT_TRY(check_list(node, kRoi, form.roi_dtype_, 2 * count));
  }
  return form;
}

bool ResizeForm::constant(const SnapshotNode& node) const {
  return (!needs_scales() || node.input_constant(kScales) != nullptr) &&
         (!needs_sizes() || node.input_constant(kSizes) != nullptr) &&
         (!needs_roi() || node.input_constant(kRoi) != nullptr);
}

Result<std::vector<AxisSizes>> ResizeForm::sizes_of(const float* scales, const int64_t* sizes,
                                                    const void* roi) const {
  std::vector<AxisSizes> list(in_.size());
  for (size_t i = 0; i < list.size(); ++i) {
    list[i].in = in_[i];
    list[i].out = out_[i];
    list[i].length = static_cast<double>(out_[i]);
  }
  const size_t count = axes_.size();
  // The axis whose scale is the one of a kept aspect ratio.
  const auto ratio = [&](size_t i) {
    return static_cast<double>(sizes[i]) / static_cast<double>(in_[axes_[i]]);
  };
  size_t lead = 0;
  for (size_t i = 1; needs_sizes() && i < count; ++i)
    if (policy_ == Policy::kNotLarger ? ratio(i) < ratio(lead) : ratio(i) > ratio(lead)) lead = i;
  std::vector<double> region(needs_roi() ? 2 * count : 0);
  if (needs_roi()) load_block(roi_dtype_, roi, static_cast<int64_t>(region.size()), region.data());
  for (size_t i = 0; i < count; ++i) {
    AxisSizes& a = list[axes_[i]];
    const double in = static_cast<double>(a.in), out = static_cast<double>(a.out);
    double part = 1;
    if (needs_roi()) {
      a.start = region[i];
      a.end = region[count + i];
      part = a.end - a.start;
    }
    if (!by_sizes_) {
      a.scale = static_cast<double>(scales[i]);
      a.length = in * a.scale;
      a.approximate = true;
    } else if (policy_ == Policy::kStretch) {
      a.scale = out / in;
      continue;
    } else {
      a.scale = ratio(lead);
      a.length = static_cast<double>(sizes[lead]) * in / static_cast<double>(in_[axes_[lead]]);
    }
    const double expected = by_sizes_ ? a.length : a.length * part;
    if (!(a.scale > 0) || !(std::fabs(expected - out) <= 1 + 1e-5 * out))
      return kernel_error("scale ", a.scale, " of axis ", axes_[i], " takes ", a.in, " to ",
                          expected, ", planned was ", a.out);
  }
  return list;
}

Result<ResizePlan> ResizeForm::plan(const float* scales, const int64_t* sizes,
                                    const void* roi) const {
  PFRT_ASSIGN(const std::vector<AxisSizes> list, sizes_of(scales, sizes, roi));
  ResizePlan plan;
  int64_t stride = 1;
  for (size_t i = list.size(); i-- > 0;) {
    Taps taps = Taps::make(sampling_, list[i]);
    const bool same = taps.identity();
    if (same && plan.axes.empty()) {
      plan.inner *= list[i].in;
    } else if (same && plan.axes.back().taps.count == 0) {
      plan.axes.back().in *= list[i].in;
      plan.axes.back().out *= list[i].out;
    } else {
      if (same) taps.count = 0;
      plan.axes.push_back({list[i].in, list[i].out, stride, std::move(taps)});
    }
    stride *= list[i].in;
  }
  std::ranges::reverse(plan.axes);
  if (plan.axes.size() > kMostAxes)
    return error(Code::kUNSUPPORTED, "so many axes change that ", plan.axes.size(),
                 " remain when neighbours are joined: at most ", kMostAxes);
  return plan;
}

int64_t ResizeForm::longest(const std::vector<int64_t>& dims, int64_t inner) const {
  int64_t longest = 0, behind = 1;
  for (size_t i = in_.size(); i-- > 0 && behind < inner; behind *= out_[i])
    longest = std::max(longest, dims[i] * behind);
  return longest;
}

}  // namespace pfrt::cpu
