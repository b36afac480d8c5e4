// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/pool/byte_averages.h"

#include <algorithm>
#include <cmath>

#include "providers/cpu/kernel/signature.h"

namespace pfrt::cpu {

namespace {

constexpr Types kByteTypes{PFRT_DTYPE_INT8, PFRT_DTYPE_UINT8};

Status need_type(const SnapshotNode& node, uint32_t i, Types types) {
  if (!node.has_input(i) || types.has(node.input_dtype(i))) return Status();
  return kernel_error("input ", i, " is ", dtype_name(node.input_dtype(i)), ", needs ",
                      types.text());
}

}  // namespace

ByteAverages::ByteAverages(const SnapshotNode& node)
    : x_scale_(node, 1),
      x_zero_(node, 2),
      y_scale_(node, 3),
      y_zero_(node, 4),
      has_sign_(node.input_dtype(0) == PFRT_DTYPE_INT8),
      out_(node.output_dtype(0)) {}

Result<ByteAverages> ByteAverages::make(const SnapshotNode& node) {
  PFRT_TRY(need(node, 1, 1));
  for (const uint32_t i : {1u, 3u}) PFRT_TRY(need_type(node, i, Types{PFRT_DTYPE_FLOAT32}));
  PFRT_TRY(need_type(node, 2, Types{node.input_dtype(0)}));
  PFRT_TRY(need_type(node, 4, Types{node.output_dtype(0)}));
  if (!kByteTypes.has(node.output_dtype(0)))
    return kernel_error("output 0 is ", dtype_name(node.output_dtype(0)), ", needs ",
                        kByteTypes.text());
  ByteAverages out(node);
  PFRT_TRY(out.x_scale_.check("X's scale", 1));
  PFRT_TRY(out.x_zero_.check("X's zero point", 1));
  PFRT_TRY(out.y_scale_.check("Y's scale", 1));
  PFRT_TRY(out.y_zero_.check("Y's zero point", 1));
  return out;
}

ByteAverages::Values ByteAverages::read(const Run& run) const {
  const double x = static_cast<double>(x_scale_.read<float>(run, 1, 1.0f)[0]);
  const double y = static_cast<double>(y_scale_.read<float>(run, 1, 1.0f)[0]);
  Values out{};
  out.ratio = x / y;
  out.flip = has_sign_ ? 0x80 : 0;
  out.x_zero = static_cast<int32_t>(x_zero_.read<float>(run, 1, 0.0f)[0]) + out.flip;
  out.y_zero = static_cast<int32_t>(y_zero_.read<float>(run, 1, 0.0f)[0]);
  out.fns = requantize_fns(out_);
  out.store = store_fn<float>(out_);
  return out;
}

void ByteAverages::Values::columns(const int32_t* sums, const float* factors, int64_t n,
                                   uint8_t* out) const {
  if (std::all_of(factors, factors + n, [](float f) { return std::isfinite(f); }))
    return fns.columns(sums, factors, y_zero, n, out);
  for (int64_t i = 0; i < n; ++i) one(sums[i], factors[i], out + i);
}

void ByteAverages::Values::lines(const int32_t* sums, float factor, int64_t n, uint8_t* out) const {
  constexpr int64_t kLine = RequantizeFns::kLine;
  float factors[kLine];
  std::fill_n(factors, kLine, factor);
  if (std::isfinite(factor)) return fns.lines(sums, kLine, factors, y_zero, n, out, kLine);
  for (int64_t i = 0; i < n * kLine; ++i) one(sums[i], factor, out + i);
}

void ByteAverages::Values::one(int64_t sum, float factor, uint8_t* out) const {
  const float value = round_even(static_cast<float>(sum) * factor) + static_cast<float>(y_zero);
  store(out, 0, &value, 1);
}

}  // namespace pfrt::cpu
