// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/conv/depthwise/weights.h"

#include <algorithm>
#include <vector>

namespace pfrt::cpu {
namespace {

constexpr int64_t kChannels = DepthwiseBytes::kChannels;

}  // namespace

std::string PackedTaps::recipe() const {
  return message("conv_depthwise_bytes/", shape.quads ? "quads/" : "pairs/",
                 shape.two_rows ? "two_rows/" : "", channels, "x", shape.taps_y, "x", shape.taps_x);
}

bool widen_taps(const uint8_t* weights, bool is_signed, int64_t taps, int64_t first, int64_t count,
                std::span<const uint32_t> zeros, int16_t* out, int32_t* sums) {
  bool small = true;
  std::fill_n(out, taps * kChannels, int16_t{0});
  std::fill_n(sums, kChannels, 0);
  for (int64_t c = 0; c < count; ++c) {
    const uint8_t* const from = weights + (first + c) * taps;
    const auto zero = static_cast<int32_t>(zeros[static_cast<size_t>(first + c) % zeros.size()]);
    for (int64_t t = 0; t < taps; ++t) {
      const int32_t weight =
          (is_signed ? int32_t{static_cast<int8_t>(from[t])} : int32_t{from[t]}) - zero;
      small &= weight >= -128 && weight <= 127;
      sums[c] += weight;
      out[t * kChannels + c] = static_cast<int16_t>(weight);
    }
  }
  return small;
}

PackedTaps packed_taps(const SnapshotNode& node, const IntegerInputs& in) {
  const auto dims = node.input_dims(in.w);
  const auto one = [&](const char* attribute) {
    const auto values = node.attr_ints(attribute);
    return values.empty() || values.front() == 1;
  };
  PackedTaps taps{
      dims[0],
      {dims.size() == 4 ? dims[2] : 1, dims.back(), false, false, DepthwiseBytes::has_vectors()}};
  taps.shape.two_rows =
      dims.size() == 4 && one("strides") && (one("dilations") || taps.shape.taps_y == 1);
  const auto* const weights = static_cast<const uint8_t*>(node.input_constant(in.w));
  const auto zeros = weight_zeros(node, in);
  if (weights == nullptr || !zeros || !DepthwiseBytes::has_quads()) return taps;
  bool& quads = taps.shape.quads;
  quads = true;
  const bool is_signed = node.input_dtype(in.w) == PFRT_DTYPE_INT8;
  const int64_t each = taps.shape.taps_y * taps.shape.taps_x;
  for (int64_t i = 0; i < taps.channels * each && quads; ++i) {
    const int32_t value =
        is_signed ? int32_t{static_cast<int8_t>(weights[i])} : int32_t{weights[i]};
    const int32_t weight = value - (*zeros)[static_cast<size_t>(i / each) % zeros->size()];
    quads = weight >= -128 && weight <= 127;
  }
  return taps;
}

std::optional<PackedInput> pack_taps(const SnapshotNode& node, const IntegerInputs& in) {
  const auto zeros = weight_zeros(node, in);
  if (!node.is_constant(in.w) || !zeros) return std::nullopt;
  const PackedTaps taps = packed_taps(node, in);
  const bool is_signed = node.input_dtype(in.w) == PFRT_DTYPE_INT8;
  PackedInput packed;
  packed.input = in.w;
  packed.recipe = message(taps.recipe(), "/", dtype_name(node.input_dtype(in.w)));
  for (const int32_t zero : *zeros) packed.recipe += message("/", zero);
  packed.bytes = taps.bytes();
  packed.pack = [=, all = std::vector<uint32_t>(zeros->begin(), zeros->end())](const void* source,
                                                                               void* out) {
    const int64_t each = taps.shape.taps_y * taps.shape.taps_x;
    std::vector<int16_t> wide(static_cast<size_t>(each * kChannels));
    auto* to = static_cast<char*>(out);
    for (int64_t first = 0; first < taps.channels; first += kChannels, to += taps.block_bytes()) {
      widen_taps(static_cast<const uint8_t*>(source), is_signed, each, first,
                 std::min(kChannels, taps.channels - first), all, wide.data(),
                 reinterpret_cast<int32_t*>(to + taps.shape.weight_bytes()));
      taps.shape.pack(wide.data(), to);
    }
  };
  return packed;
}

}  // namespace pfrt::cpu
