// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/conv/bf16_dot.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "providers/cpu/elements/ceil_div.h"
#include "providers/cpu/kernels/matmul/bf16_pairs.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kPanel = DirectPlan::kPanel;

// The sums of a panel at position (y, x), each tap added by itself; |image| is that of the group.
void add_products(const DirectPlan& plan, const float* image, const uint32_t* weights, int64_t y,
                  int64_t x, float* sums) {
  const Window& w = plan.geometry.window;
  const int64_t size = w.image_size(), channels = plan.geometry.group_in;
  for (int64_t tap = 0; tap < w.taps(); ++tap) {
    const int64_t row = y * w.strides[0] - w.pads[0] + tap / w.kernel[1] * w.dilations[0];
    const int64_t column = x * w.strides[1] - w.pads[1] + tap % w.kernel[1] * w.dilations[1];
    if (row < 0 || row >= w.image[0] || column < 0 || column >= w.image[1]) continue;
    const int64_t pixel = row * w.image[1] + column;
    for (int64_t c = 0; c < channels; ++c) {
      const float factor =
          image[plan.nchw16c.input ? (c / kPanel * size + pixel) * kPanel + c % kPanel
                                   : c * size + pixel];
      const uint32_t* const pairs = weights + plan.order.k(tap, c / 2) * kPanel;
      const int shift = c % 2 == 0 ? 16 : 0;
      for (int64_t o = 0; o < kPanel; ++o)
        sums[o] += factor * std::bit_cast<float>(pairs[o] << shift & 0xffff0000);
    }
  }
}

}  // namespace

PackedInput pack_bf16_weights(int64_t groups, int64_t out, int64_t channels, int64_t taps_y,
                              int64_t taps_x) {
  const ChunkOrder order = ChunkOrder::of_pairs(channels, taps_y, taps_x, 1);
  const int64_t taps = taps_y * taps_x, panels = groups * ceil_div(out, kPanel);
  const int64_t lanes = order.chunks() * order.depth() * kPanel;
  PackedInput packed = pack_direct_weights(groups, out, order);
  packed.recipe = message("bf16_pairs/", channels, "/", packed.recipe);
  packed.bytes += static_cast<uint64_t>(panels) * sizeof(float);
  packed.pack = [=, inner = std::move(packed.pack)](const void* source, void* memory) {
    const auto* from = static_cast<const float*>(source);
    std::vector<uint32_t> pairs(static_cast<size_t>(groups * out * order.channels * taps));
    uint32_t* to = pairs.data();
    for (int64_t o = 0; o < groups * out; ++o, from += channels * taps) {
      if (taps == 1) {
        to_bf16_pairs(from, channels, to);
        to += order.channels;
        continue;
      }
      for (int64_t c = 0; c < channels; c += 2, to += taps)
        zip_bf16_pairs(from + c * taps, c + 1 < channels ? from + (c + 1) * taps : nullptr, taps,
                       to);
    }
    inner(pairs.data(), memory);
    const auto* const panel = static_cast<const uint32_t*>(memory);
    auto* const reaches = static_cast<float*>(memory) + panels * lanes;
    for (int64_t p = 0; p < panels; ++p) reaches[p] = reach_of(panel + p * lanes, lanes);
  };
  return packed;
}

void bf16_direct_sums(const Run& run, const DirectPlan& plan, const DirectTask& task, int64_t image,
                      float* out, int64_t out_panel) {
  direct_sums(run, plan, task, image, out, out_panel);
  if (plan.elements != DirectElements::kBf16Dot) return;
  const ConvGeometry& g = plan.geometry;
  const int64_t width = g.window.positions[1], group = image % g.groups;
  const int64_t first = group * plan.panels + task.panel;
  const uint16_t* const largest = plan.largest(run);
  const uint16_t most = *std::max_element(largest, largest + plan.image.tasks());
  const float* const reaches = run.packed<float>() + g.groups * plan.panels * plan.panel_elements();
  for (int64_t p = 0; p < task.panels; ++p, out += out_panel) {
    const DotSums right = trusted_sums(most, reaches[first + p]);
    if (right == DotSums::kRight) continue;
    float bias[kPanel] = {};
    if (plan.has_bias)
      std::copy_n(run.input<float>(2) + group * g.group_out + (task.panel + p) * kPanel,
                  std::min(kPanel, task.columns - p * kPanel), bias);
    const float* const pixels = run.input<float>(0) + image * g.group_in * g.window.image_size();
    const uint32_t* const weights = run.packed<uint32_t>() + (first + p) * plan.panel_elements();
    for (int64_t at = task.begin; at < task.end && !run.stopped(); ++at) {
      float* const line = out + (at - task.begin) * kPanel;
      if (right == DotSums::kIfFinite && all_finite(line, kPanel)) continue;
      float sums[kPanel] = {};
      add_products(plan, pixels, weights, task.top + at / width, at % width, sums);
      for (int64_t o = 0; o < kPanel; ++o) line[o] = bias[o] + sums[o];
    }
  }
}

}  // namespace pfrt::cpu
