// SPDX-License-Identifier: Apache-2.0
//
// Convolutions of bytes by 3 x 3 taps by Winograd's F(2 x 2, 3 x 3) in integers. The transform of
// the weights is doubled along both dimensions, which makes all its factors whole; four times the
// sum comes out, exactly. Transformed pixels are within +-1020 and weights within +-2295; a quarter
// of the sum of int32 is exact up to 2^29, which 917 channels cannot exceed.
#include <algorithm>
#include <memory>

#include "providers/cpu/kernels/conv/int16_dot.h"
#include "providers/cpu/kernels/conv/winograd/driver.h"
#include "providers/cpu/kernels/conv/winograd/transforms.h"
#include "providers/cpu/kernels/matmul/int16_dot.h"
#include "providers/cpu/row/ceil_div.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kPanel = WinogradPlan::kPanel, kOut = ThreeTaps::kOut;
constexpr int64_t kTileElements = ThreeTaps::kSide * ThreeTaps::kSide;
constexpr int64_t kPass = 256;  // pairs of k in a register: integers have no errors that would grow
constexpr int64_t kLeastChannels = 32, kMostChannels = 896, kLeastOutputs = 32;
static_assert(9 * 255 * 255 * kMostChannels < 1 << 29);

// Unsigned, so that sums may wrap around.
using Pairs = uint16_t __attribute__((vector_size(32)));
using Sums = uint32_t __attribute__((vector_size(32)));

struct Plan : WinogradPlan {
  Int16DotConv conv;

  explicit Plan(const Int16DotConv& c)
      : WinogradPlan(c.as_int16_dot(), {PanelMicrokernel::get_int16_dot(),
                                        transform_pixels<ThreeTaps, Pairs>, kPass, kPass}),
        conv(c) {}

  // Lines of the two rows of positions of a row of tiles.
  int64_t scratch_elements() const { return kOut * kOut * tiles_x * kPanel; }
};

// A tile of sums to 2 x 2 positions of |outputs| channels, |row| apart.
PFRT_AVX2 void transform_tile(const float* in, int64_t stride, int64_t outputs, float* out,
                              int64_t row) {
  for (int64_t half = 0; half < outputs; half += 8) {
    Sums sums[kOut][kOut];
    transform_sums<ThreeTaps>(in + half, stride, sums);
    for (int64_t y = 0; y < kOut; ++y)
      for (int64_t x = 0; x < kOut; ++x)
        store_lanes(out + y * row + x * kPanel + half, _mm256_srai_epi32(__m256i(sums[y][x]), 2));
  }
}

void put_out(const Run& run, const Plan& plan, const WinogradTiles& tiles, float* scratch,
             const PutSums::Fn& put) {
  const Window& w = plan.geometry.window;
  const int64_t height = w.positions[0], width = w.positions[1];
  const int64_t pitch = kOut * plan.tiles_x * kPanel;
  const int64_t stride = plan.sums_stride(), outputs = plan.outputs(tiles.panel);
  const float* from = tiles.sums;
  for (int64_t y = tiles.begin; y < tiles.end; ++y) {
    for (int64_t x = 0; x < plan.tiles_x; ++x, from += kPanel)
      transform_tile(from, stride, outputs, scratch + kOut * x * kPanel, pitch);
    for (int64_t row = y * kOut; row < std::min(y * kOut + kOut, height); ++row)
      put(run, {tiles.channel, tiles.channels, row * width, width,
                scratch + (row - y * kOut) * pitch, scratch + plan.scratch_elements()});
  }
}

// Nine pairs of weights to the elements of a tile, |stride| apart.
PFRT_AVX2 void transform_weights(const uint32_t* pairs, uint32_t* out, int64_t stride) {
  for (const int shift : {0, 16}) {
    int32_t taps[3][3], elements[kTileElements];
    for (int64_t t = 0; t < 9; ++t) taps[t / 3][t % 3] = static_cast<int16_t>(pairs[t] >> shift);
    transform_taps<ThreeTaps>(taps, elements);
    for (int64_t i = 0; i < kTileElements; ++i)
      out[i * stride] |= (static_cast<uint32_t>(elements[i]) & 0xffff) << shift;
  }
}

}  // namespace

bool int16_dot_winograd_takes(const SnapshotNode& node, const IntegerInputs& in) {
  const auto weights = node.input_dims(in.w);
  return has_plain_taps(node, in.w, 3) && weights[1] >= kLeastChannels &&
         weights[1] <= kMostChannels &&
         weights[0] / std::max<int64_t>(node.attr_int("group", 1), 1) >= kLeastOutputs;
}

PackedInput pack_int16_dot_winograd(int64_t groups, int64_t outs, int64_t pairs) {
  const WinogradWeights weights{groups, ceil_div(outs, kPanel), kTileElements, pairs};
  PackedInput packed;
  packed.recipe = message("int16_dot_winograd/", groups, "/", outs, "x", pairs);
  packed.bytes = weights.bytes();
  packed.pack = [=](const void* source, void* memory) {
    const auto* from = static_cast<const uint32_t*>(source);
    auto* const to = static_cast<uint32_t*>(memory);
    std::fill_n(to, weights.size(), 0);
    for (int64_t g = 0; g < groups; ++g)
      for (int64_t o = 0; o < outs; ++o)
        for (int64_t p = 0; p < pairs; ++p, from += 9)
          transform_weights(from, to + weights.line(g, o / kPanel, p) + o % kPanel,
                            weights.stride());
  };
  return packed;
}

Kernel int16_dot_winograd_kernel(const Int16DotConv& conv, PutSums put) {
  const auto plan = std::make_shared<const Plan>(conv);
  Kernel kernel;
  kernel.shared_bytes = plan->shared_bytes() + conv.plane_bytes();
  kernel.scratch_bytes = static_cast<uint64_t>(plan->scratch_elements()) * sizeof(float) +
                         static_cast<uint64_t>(plan->geometry.window.positions[1]) * put.bytes;
  kernel.run = [plan, put = std::move(put)](const Run& run) {
    const PutSums::Fn put_sums = put.of_run(run);
    const int32_t zero = plan->conv.read_x_zero(run);
    return run_winograd(
        run, *plan, "integer convolution",
        [&](const WinogradTiles& tiles, uint32_t worker) {
          put_out(run, *plan, tiles, run.scratch<float>(worker), put_sums);
        },
        [&](int64_t image) {
          float* const planes = run.shared<float>() + plan->shared_elements();
          plan->conv.widen(run, image, zero, reinterpret_cast<uint32_t*>(planes));
          return planes;
        });
  };
  return kernel;
}

}  // namespace pfrt::cpu
