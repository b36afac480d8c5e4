// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/norm/norm.h"

#include <cmath>

#include "providers/cpu/epilogue/norm_rows.h"

namespace pfrt::cpu {
namespace {

constexpr KernelRow kRows[] = {
    with_blocks(with_tail({"", "BatchNormalization", kFloats, "batch_norm_planes", "generic",
                           refuse_batch_norm, make_batch_norm}),
                refuse_batch_norm_blocked, make_batch_norm_blocked),
    with_tail({"", "BatchNormalization", kFloats, "batch_norm_training", "generic",
               refuse_batch_norm_training, make_batch_norm_training}),
    with_tail({"", "InstanceNormalization", kFloats, "instance_norm_planes", "generic", nullptr,
               make_instance_norm}),
    with_tail({"", "GroupNormalization", kFloats, "group_norm_planes", "generic", nullptr,
               make_group_norm}),
    with_tail({"", "LayerNormalization", kFloats, "layer_norm_rows", "generic", nullptr,
               make_layer_norm}),
    with_tail(
        {"", "RMSNormalization", kFloats, "rms_norm_rows", "generic", nullptr, make_rms_norm}),
    {"", "LpNormalization", kFloats, "lp_norm_ref", "generic", nullptr, make_lp_norm},
    {"", "MeanVarianceNormalization", kFloats, "mean_variance_norm_ref", "generic", nullptr,
     make_mean_variance_norm},
    with_blocks(with_tail({"", "LRN", kFloats, "lrn_channels", "generic", nullptr, make_lrn}),
                refuse_lrn_blocked, make_lrn_blocked),
};

// Eight sums side by side, joined pairwise.
template <typename T, typename Fn>
double add_up_part(const T* x, int64_t n, Fn&& fn) {
  double s[8] = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int64_t j = 0; j < 8; ++j) s[j] += fn(static_cast<double>(x[i + j]));
  for (; i < n; ++i) s[i & 7] += fn(static_cast<double>(x[i]));
  return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
}

template <typename T, typename Fn>
double add_up(Pace& pace, const T* x, int64_t n, Fn&& fn) {
  double sum = 0;
  in_parts(pace, n,
           [&](int64_t begin, int64_t end) { sum += add_up_part(x + begin, end - begin, fn); });
  return sum;
}

}  // namespace

template <typename T>
double row_sum(Pace& pace, const T* x, int64_t n) {
  return add_up(pace, x, n, [](double v) { return v; });
}

template <typename T>
double row_squares(Pace& pace, const T* x, int64_t n, double center) {
  return add_up(pace, x, n, [center](double v) { return (v - center) * (v - center); });
}

template <typename T>
double row_magnitudes(Pace& pace, const T* x, int64_t n) {
  return add_up(pace, x, n, [](double v) { return std::fabs(v); });
}

template double row_sum(Pace&, const float*, int64_t);
template double row_sum(Pace&, const double*, int64_t);
template double row_squares(Pace&, const float*, int64_t, double);
template double row_squares(Pace&, const double*, int64_t, double);
template double row_magnitudes(Pace&, const float*, int64_t);
template double row_magnitudes(Pace&, const double*, int64_t);

std::span<const KernelRow> norm_kernels() { return kRows; }

}  // namespace pfrt::cpu
