// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/quantize/scales.h"

#include <algorithm>
#include <vector>

#include "providers/cpu/elements/convert.h"
#include "providers/cpu/elements/lines.h"
#include "providers/cpu/kernel/kernel.h"
#include "providers/cpu/kernel/signature.h"

namespace pfrt::cpu {

Result<Scales> Scales::make(const SnapshotNode& node) {
  PFRT_TRY(need(node, 2, 1));
  PFRT_TRY(need_output_dims(node, 0, node.input_dims(0)));
  Scales s;
  s.scale_dtype_ = node.input_dtype(1);
  const auto scales = node.input_dims(1);
  if (node.has_input(2)) {
    s.zero_dtype_ = node.input_dtype(2);
    if (node.input_rank(2) < 0 || node.input_elements(2) != node.input_elements(1))
      return kernel_error("zero points have dimensions ", dims_text(node.input_dims(2)),
                          ", scales have ", dims_text(scales));
  }
  if (node.input_elements(1) == 1) return s;

  const auto dims = node.input_dims(0);
  PFRT_ASSIGN(const Lines lines, Lines::make(dims, node.attr_int("axis", 1)));
  s.length_ = lines.length;
  s.inner_ = lines.inner;
  s.block_ = node.attr_int("block_size", 0);
  if (s.block_ < 0) return kernel_error("block_size is ", s.block_, ": 0 or more");
  if (s.block_ == 0) {
    s.kind_ = Kind::kAxis;
    if (scales.size() == 1 && scales[0] == lines.length) return s;
    return kernel_error("scales have dimensions ", dims_text(scales), ", the axis is ",
                        lines.length, " long");
  }
  s.kind_ = Kind::kBlocks;
  s.blocks_ = lines.length / s.block_ + (lines.length % s.block_ != 0 ? 1 : 0);
  PFRT_ASSIGN(const int64_t axis, axis_of(node.attr_int("axis", 1), dims.size()));
  std::vector<int64_t> wanted(dims.begin(), dims.end());
  wanted[static_cast<size_t>(axis)] = s.blocks_;
  if (same_dims(scales, wanted)) return s;
  return kernel_error("scales have dimensions ", dims_text(scales), ", blocks of ", s.block_,
                      " make ", dims_text(wanted));
}

Scales::Stretch Scales::stretch(int64_t element) const {
  if (kind_ == Kind::kTensor) return {0, 0, INT64_MAX};
  const int64_t i = element % inner_, a = element / inner_ % length_;
  if (kind_ == Kind::kAxis)
    return inner_ == 1 ? Stretch{a, 1, length_ - a} : Stretch{a, 0, inner_ - i};
  const int64_t at = (element / inner_ / length_ * blocks_ + a / block_) * inner_ + i;
  return inner_ == 1 ? Stretch{at, 0, std::min(block_ - a % block_, length_ - a)}
                     : Stretch{at, 1, inner_ - i};
}

template <typename T>
void Scales::load(pfrt_dtype dtype, const void* parameters, int64_t first, int64_t n,
                  T* out) const {
  for (int64_t done = 0; done < n;) {
    const Stretch s = stretch(first + done);
    const int64_t count = std::min(s.length, n - done);
    const void* at = element(dtype, parameters, s.at);
    if (s.step == 1)
      load_block(dtype, at, count, out + done);
    else
      std::fill_n(out + done, count, load_scalar<T>(dtype, at));
    done += count;
  }
}

template <typename T>
void Scales::load_scales(const Run& run, int64_t first, int64_t n, T* out) const {
  load(scale_dtype_, run.input(1), first, n, out);
}

template <typename T>
void Scales::load_zeros(const Run& run, int64_t first, int64_t n, T* out) const {
  if (zero_dtype_ == PFRT_DTYPE_UNSET)
    std::fill_n(out, n, T{0});
  else
    load(zero_dtype_, run.input(2), first, n, out);
}

template void Scales::load_scales(const Run&, int64_t, int64_t, float*) const;
template void Scales::load_scales(const Run&, int64_t, int64_t, double*) const;
template void Scales::load_zeros(const Run&, int64_t, int64_t, float*) const;
template void Scales::load_zeros(const Run&, int64_t, int64_t, double*) const;

}  // namespace pfrt::cpu
