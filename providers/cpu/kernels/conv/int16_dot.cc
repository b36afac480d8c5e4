// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/conv/int16_dot.h"

#include <algorithm>
#include <utility>

#include "providers/cpu/kernels/matmul/int16_dot.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kTask = 16 << 10;  // pixels that become pairs
constexpr Types kBytes{PFRT_DTYPE_INT8, PFRT_DTYPE_UINT8};

}  // namespace

std::optional<std::vector<int32_t>> weight_zeros(const SnapshotNode& node,
                                                 const IntegerInputs& in) {
  if (!node.has_input(in.w_zero)) return std::vector<int32_t>{0};
  const int64_t n = node.input_elements(in.w_zero), channels = node.input_dims(in.w)[0];
  const pfrt_dtype dtype = node.input_dtype(in.w_zero);
  const void* const bytes = node.input_constant(in.w_zero);
  if (bytes == nullptr || n < 1 || channels % n != 0 || !kBytes.has(dtype)) return std::nullopt;
  std::vector<int32_t> zeros;
  for (int64_t i = 0; i < n; ++i)
    zeros.push_back(dtype == PFRT_DTYPE_INT8 ? static_cast<const int8_t*>(bytes)[i]
                                             : static_cast<const uint8_t*>(bytes)[i]);
  if (std::ranges::adjacent_find(zeros, std::not_equal_to<>()) == zeros.end()) zeros.resize(1);
  return zeros;
}

PackedInput packed_from_bytes(const SnapshotNode& node, const IntegerInputs& in,
                              const std::vector<int32_t>& zeros, PackedInput packed) {
  const auto dims = node.input_dims(in.w);
  const int64_t outs = dims[0], channels = dims[1], pairs = pairs_of(channels);
  const int64_t taps = SnapshotNode::elements(dims.subspan(2));
  const pfrt_dtype dtype = node.input_dtype(in.w);
  packed.input = in.w;
  packed.recipe = message("pairs_of_", dtype_name(dtype), "/", channels, "/", packed.recipe);
  for (const int32_t zero : zeros) packed.recipe += message("/", zero);
  packed.pack = [=, inner = std::move(packed.pack)](const void* source, void* out) {
    std::vector<uint32_t> wide(static_cast<size_t>(outs * pairs * taps));
    for (int64_t o = 0; o < outs; ++o) {
      const int32_t zero = zeros[static_cast<size_t>(o) % zeros.size()];
      for (int64_t c = 0; c < channels; c += 2) {
        const auto* const first = static_cast<const uint8_t*>(source) + (o * channels + c) * taps;
        zip_int16_pairs(dtype, first, c + 1 < channels ? first + taps : nullptr, taps, zero,
                        wide.data() + (o * pairs + c / 2) * taps);
      }
    }
    inner(wide.data(), out);
  };
  return packed;
}

ConvGeometry Int16DotConv::as_int16_dot() const {
  ConvGeometry g = geometry;
  g.group_in = pairs_of(g.group_in);
  return g;
}

uint64_t Int16DotConv::plane_bytes() const {
  return static_cast<uint64_t>(pairs_of(geometry.group_in) * geometry.window.image_size()) *
         sizeof(uint32_t);
}

void Int16DotConv::widen(const Run& run, int64_t image, int32_t zero, uint32_t* planes) const {
  const int64_t pixels = geometry.window.image_size(), channels = geometry.group_in;
  const uint8_t* const from = run.input<uint8_t>(inputs.x) + image * channels * pixels;
  const int64_t tasks = (pixels + kTask - 1) / kTask;
  run.parallel(pairs_of(channels) * tasks, [&](int64_t i, uint32_t) {
    if (run.stopped()) return;
    const int64_t p = i / tasks, begin = i % tasks * kTask;
    const uint8_t* const first = from + 2 * p * pixels + begin;
    zip_int16_pairs(x_type, first, 2 * p + 1 < channels ? first + pixels : nullptr,
                    std::min(kTask, pixels - begin), zero, planes + p * pixels + begin);
  });
}

}  // namespace pfrt::cpu
