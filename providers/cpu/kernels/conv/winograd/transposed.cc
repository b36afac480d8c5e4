// SPDX-License-Identifier: Apache-2.0
//
// ConvTranspose whose kernel is twice as long as its stride: each phase (phases.h) is a convolution
// of 2 x 2 taps over the same pixels, which Winograd's F(2 x 2, 2 x 2) makes of 9 products in place
// of 16. Pixels are transformed once for all phases.
#include <algorithm>
#include <memory>

#include "providers/cpu/elements/ceil_div.h"
#include "providers/cpu/elements/load.h"
#include "providers/cpu/epilogue/in_float32.h"
#include "providers/cpu/kernel/pays.h"
#include "providers/cpu/kernels/conv/phases.h"
#include "providers/cpu/kernels/conv/winograd/driver.h"
#include "providers/cpu/kernels/conv/winograd/transforms.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kPanel = WinogradPlan::kPanel, kOut = TwoTaps::kOut;
constexpr int64_t kTileElements = TwoTaps::kSide * TwoTaps::kSide;
constexpr int64_t kChain = 16, kPass = 64;
constexpr int64_t kLeastInputs = 128;  // below, the reference has smaller errors
constexpr int64_t kLeastOutputs = 16;
constexpr int64_t kMostElements = 4 << 20;  // of weights, which take longer to read than they save

using Floats = float __attribute__((vector_size(32)));

// A tile of sums to 2 x 2 sites of |outputs| channels, |row| and |step| apart. False where one is
// not finite: with infinite pixels the differences of a transform are NaN where the sum itself is
// infinite.
PFRT_AVX2 bool transform_tile(const float* in, int64_t stride, int64_t outputs, const float* bias,
                              float* out, int64_t row, int64_t step) {
  Floats nothing = {};
  for (int64_t half = 0; half < outputs; half += 8) {
    Floats sums[kOut][kOut];
    transform_sums<TwoTaps>(in + half, stride, sums);
    const Floats add = load_lanes<Floats>(bias + half);
#pragma GCC unroll 4
    for (int64_t i = 0; i < kOut * kOut; ++i) {
      const Floats sum = sums[i / kOut][i % kOut];
      nothing += sum - sum;
      store_lanes(out + i / kOut * row + i % kOut * step + half, add + sum);
    }
  }
  return _mm256_movemask_ps(_mm256_cmp_ps(nothing, nothing, _CMP_UNORD_Q)) == 0;
}

struct Plan : WinogradPlan {
  Phases phases;
  bool has_bias;

  // |g| is the transposed convolution; WinogradPlan sees that of all sites.
  Plan(const ConvGeometry& g, const Phases& p, bool bias)
      : WinogradPlan({p.window(), g.batch, g.groups, g.group_in, g.group_out},
                     {PanelMicrokernel::get(), transform_pixels<TwoTaps, Floats>, kChain, kPass,
                      p.y.stride * p.x.stride}),
        phases(p),
        has_bias(bias) {}

  // Elements of a row of pixels in the output of a row of tiles.
  int64_t out_row() const { return kOut * tiles_x * phases.x.stride * kPanel; }
  uint64_t scratch_bytes() const {
    return static_cast<uint64_t>(kOut * phases.y.stride * out_row()) * sizeof(float);
  }
};

// The reference: sums at a site, to |out|.
void reference_site(const Run& run, const Plan& plan, const WinogradTiles& tiles, const float* bias,
                    const int64_t (&site)[2], const int64_t (&phase)[2], float* out) {
  const ConvGeometry& g = plan.geometry;
  const PhaseAxis &ay = plan.phases.y, &ax = plan.phases.x;
  const int64_t group = tiles.image % g.groups, taps = ay.kernel * ax.kernel;
  const int64_t pixels = ay.in * ax.in;
  const float* const weights = run.packed<float>() + plan.weights.source_at();
  const float* const in = run.input<float>(0) + tiles.image * g.group_in * pixels;
  std::copy_n(bias, kPanel, out);
  for (int64_t by = 0; by < ay.taps; ++by)
    for (int64_t bx = 0; bx < ax.taps; ++bx) {
      const int64_t y = ay.first + site[0] - by, x = ax.first + site[1] - bx;
      if (y < 0 || y >= ay.in || x < 0 || x >= ax.in) continue;
      const int64_t tap = ay.tap(phase[0], by) * ax.kernel + ax.tap(phase[1], bx);
      for (int64_t c = 0; c < g.group_in; ++c) {
        const int64_t row = (group * g.group_in + c) * g.group_out + tiles.panel * kPanel;
        const float pixel = in[c * pixels + y * ax.in + x];
        for (int64_t o = 0; o < tiles.channels; ++o)
          out[o] += weights[(row + o) * taps + tap] * pixel;
      }
    }
}

// The sums at row |y| of tiles, in all phases, to lines of the output.
void transform_row(const Run& run, const Plan& plan, const WinogradTiles& tiles, int64_t y,
                   float* out) {
  const ConvGeometry& g = plan.geometry;
  const int64_t sy = plan.phases.y.stride, sx = plan.phases.x.stride, row = plan.out_row();
  const int64_t stride = plan.sums_stride(), outputs = plan.outputs(tiles.panel);
  float bias[kPanel] = {};
  if (plan.has_bias)
    std::copy_n(run.input<float>(2) + tiles.channel % (g.groups * g.group_out), tiles.channels,
                bias);
  for (int64_t phase = 0; phase < sy * sx; ++phase) {
    const int64_t fy = phase / sx, fx = phase % sx;
    const float* from =
        tiles.sums + phase * plan.phase_stride() + (y - tiles.begin) * plan.tiles_x * kPanel;
    for (int64_t x = 0; x < plan.tiles_x; ++x, from += kPanel) {
      float* const to = out + fy * row + (kOut * x * sx + fx) * kPanel;
      if (transform_tile(from, stride, outputs, bias, to, sy * row, sx * kPanel)) continue;
      for (int64_t i = 0; i < kOut * kOut; ++i)
        reference_site(run, plan, tiles, bias, {y * kOut + i / kOut, x * kOut + i % kOut}, {fy, fx},
                       to + i / kOut * sy * row + i % kOut * sx * kPanel);
    }
  }
}

void put_out(const Run& run, const Plan& plan, const WinogradTiles& tiles, float* scratch) {
  for (int64_t y = tiles.begin; y < tiles.end; ++y) {
    transform_row(run, plan, tiles, y, scratch);
    const int64_t site = y * kOut;
    put_sites(run, plan.phases, plan.geometry.group_out,
              {tiles.image, tiles.panel, 1, site, std::min(kOut, plan.phases.y.sites - site), 0,
               plan.phases.x.sites},
              scratch, plan.out_row(), 0);
  }
}

// The taps of a phase, |y| and |x| apart, to the elements of a tile, |stride| apart. The later tap
// sees the earlier pixel, so taps are taken in reverse.
PFRT_AVX2 void transform_weights(const float* from, int64_t y, int64_t x, float* out,
                                 int64_t stride) {
  const double taps[2][2] = {{from[y + x], from[y]}, {from[x], from[0]}};
  double elements[kTileElements];
  transform_taps<TwoTaps>(taps, elements);
  for (int64_t i = 0; i < kTileElements; ++i) out[i * stride] = static_cast<float>(elements[i]);
}

}  // namespace

std::string refuse_conv_transpose_winograd(const KernelRequest& node) {
  if (std::string why = refuse_conv_transpose_direct(node); !why.empty()) return why;
  if (is_plain(node.precision())) return "precision ieee takes no transformed numbers";
  const auto weights = node.input_dims(1), strides = node.attr_ints("strides");
  if (weights.size() != 4 || strides.size() != 2 || weights[2] != 2 * strides[0] ||
      weights[3] != 2 * strides[1])
    return "the kernel is not twice as long as its strides";
  const int64_t channels = weights[0] / node.attr_int("group", 1);
  if (channels < kLeastInputs || !pays(weights[1] >= kLeastOutputs))
    return message("tiles are for many channels, not ", channels, " to ", weights[1]);
  if (!pays(SnapshotNode::elements(weights) <= kMostElements / kTileElements * kOut * kOut))
    return "so many transformed weights take longer to read than they save";
  return "";
}

std::optional<PackedInput> pack_conv_transpose_winograd(const SnapshotNode& node) {
  const auto dims = node.input_dims(1), strides = node.attr_ints("strides");
  const int64_t groups = node.attr_int("group", 1), channels = dims[0] / groups, outs = dims[1];
  const int64_t sy = strides[0], sx = strides[1], panels = ceil_div(outs, kPanel);
  const WinogradWeights weights{groups, panels * sy * sx, kTileElements, channels};
  PackedInput packed;
  packed.input = 1;
  packed.recipe = message("phase_winograd/", groups, "/", outs, "x", channels, "/", sy, "x", sx);
  const int64_t source_size = dims[0] * outs * 4 * sy * sx;
  packed.bytes = weights.bytes(source_size);
  packed.pack = [=](const void* source, void* memory) {
    const float* from = static_cast<const float*>(source);
    float* const to = static_cast<float*>(memory);
    std::fill_n(to, weights.size(), 0.0f);
    std::copy_n(from, source_size, to + weights.source_at());
    for (int64_t g = 0; g < groups; ++g)
      for (int64_t c = 0; c < channels; ++c)
        for (int64_t o = 0; o < outs; ++o, from += 4 * sy * sx)
          for (int64_t phase = 0; phase < sy * sx; ++phase)
            transform_weights(from + phase / sx * 2 * sx + phase % sx, 2 * sx * sy, sx,
                              to + weights.line(g, phase * panels + o / kPanel, c) + o % kPanel,
                              weights.stride());
  };
  return packed_from_float32(node, std::move(packed));
}

Result<Kernel> make_conv_transpose_winograd(const KernelRequest& node) {
  PFRT_ASSIGN(const ConvGeometry g, transposed_geometry(node));
  PFRT_TRY(need_types(node, {1, 2}, Types{node.input_dtype(0)}));
  PFRT_TRY(check_bias(node, 2, g.groups * g.group_out));
  Kernel kernel;
  if (g.batch == 0 || g.window.image_size() == 0) {
    kernel.run = [](const Run& run) { return run.stop(); };
    return kernel;
  }
  if (PanelMicrokernel::get() == nullptr)
    return error(Code::kUNSUPPORTED, "AVX2 is not usable any more");
  const auto plan =
      std::make_shared<const Plan>(g, Phases(g.window, g.group_in), node.has_input(2));
  kernel.flops = g.flops();
  kernel.shared_bytes = plan->shared_bytes();
  kernel.packed_alone = true;
  kernel.scratch_bytes = plan->scratch_bytes();
  kernel.run = [plan](const Run& run) {
    return run_winograd(run, *plan, "conv_transpose_winograd",
                        [&](const WinogradTiles& tiles, uint32_t worker) {
                          put_out(run, *plan, tiles, run.scratch<float>(worker));
                        });
  };
  return in_float32(node, {0, 2}, std::move(kernel));
}

}  // namespace pfrt::cpu
