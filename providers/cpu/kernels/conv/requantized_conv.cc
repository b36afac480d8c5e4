// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/conv/requantized_conv.h"

#include <algorithm>
#include <cmath>

#include "providers/cpu/kernels/conv/geometry.h"

namespace pfrt::cpu {

RequantizedConv::RequantizedConv(const SnapshotNode& node, int64_t channels)
    : channels_(channels),
      x_scale_(node, 1),
      w_scale_(node, 4),
      y_scale_(node, 6),
      y_zero_(node, 7),
      dtype_(node.output_dtype(0)) {}

Result<RequantizedConv> RequantizedConv::make(const SnapshotNode& node) {
  PFRT_TRY(need_types(node, {1, 4, 6}, kFloats));
  PFRT_TRY(need_types(node, {7}, Types{PFRT_DTYPE_INT8, PFRT_DTYPE_UINT8}));
  PFRT_TRY(need_types(node, {8}, Types{PFRT_DTYPE_INT32}));
  RequantizedConv out(node, node.input_dims(3)[0]);
  PFRT_TRY(out.x_scale_.check("X's scale", 1));
  PFRT_TRY(out.w_scale_.check("W's scale", out.channels_));
  PFRT_TRY(out.y_scale_.check("Y's scale", 1));
  PFRT_TRY(out.y_zero_.check("Y's zero point", 1));
  PFRT_TRY(check_bias(node, 8, out.channels_));
  return out;
}

RequantizedConv::Scales RequantizedConv::read(const Run& run) const {
  const float sx = x_scale_.read<float>(run, 1, 1.0f)[0],
              sy = y_scale_.read<float>(run, 1, 1.0f)[0];
  Scales out{w_scale_.read<float>(run, channels_, 1.0f),
             y_zero_.read<float>(run, 1, 0.0f)[0],
             true,
             true,
             dtype_ == PFRT_DTYPE_INT8,
             requantize_fns(dtype_),
             store_fn<float>(dtype_)};
  for (float& scale : out.scales) {
    scale = sx * scale / sy;
    out.finite &= std::isfinite(scale);
    out.below_one &= std::abs(scale) < 1;
  }
  return out;
}

void RequantizedConv::Scales::lines(const int32_t* sums, int64_t channel, int64_t count, int64_t n,
                                    uint8_t* out) const {
  float scale[kLine] = {};
  std::copy_n(scales.data() + channel, count, scale);
  if (finite) return fns.lines(sums, kLine, scale, static_cast<int32_t>(zero), n, out, kLine);
  float line[kLine];
  for (int64_t i = 0; i < n; ++i) {
    requantize(line, reinterpret_cast<const uint32_t*>(sums + i * kLine), scale, 1, zero, kLine);
    store(out, i * kLine, line, kLine);
  }
}

}  // namespace pfrt::cpu
