// SPDX-License-Identifier: Apache-2.0
//
// Convolutions of 3 x 3 taps by Winograd's F(2 x 2, 3 x 3): 16 products of transformed numbers take
// the place of 36. Weights are transformed once, in double precision. Sums are added in short
// chains, so that errors are about those of sums without transforms (bench/models/error.sh). If
// precision allows larger errors, F(4 x 4, 3 x 3) is used: 36 products take the place of 144. So is
// F(2 x 2, 5 x 5) for 5 x 5 taps, where 36 products take the place of 100.
#include <algorithm>
#include <memory>

#include "providers/cpu/epilogue/in_float32.h"
#include "providers/cpu/isa/isa.h"
#include "providers/cpu/kernel/pays.h"
#include "providers/cpu/kernels/conv/winograd/driver.h"
#include "providers/cpu/kernels/conv/winograd/f32_tile.h"
#include "providers/cpu/kernels/matmul/bf16_dot.h"
#include "providers/cpu/kernels/matmul/bf16_pairs.h"
#include "providers/cpu/kernels/matmul/transpose.h"
#include "providers/cpu/kernels/window/reorder.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kPanel = WinogradPlan::kPanel;
constexpr int64_t kPutTiles = 8;  // tiles that are put to the output together
constexpr int64_t kMostOut = 4;
// With fewer channels the transforms cost more than they save; those of 3 x 3 taps pay for any
// number of outputs.
constexpr int64_t kLeastInputs = 32, kLeastInputsOf5 = 16, kLeastOutputsOf5 = 24;

// The chains of an exact method are short, four in a pass. With few channels the roundings of the
// transforms weigh more, and shorter chains make up for it.
int64_t short_chain(int64_t channels) { return channels <= 128 ? 8 : 16; }

// Whether there is code for |channels| of an exact method; it is generated where it is asked for.
bool has_code(int64_t channels) {
  return PanelMicrokernel::get() != nullptr &&
         ShortChainMicrokernel::get(short_chain(channels)) != nullptr;
}

WinogradForm form_of(const F32Method& method, int64_t channels, bool nchw16c, int64_t bytes) {
  if (method.pairs) {
    // The rounding of factors outweighs that of sums.
    constexpr int64_t kChain = 256;
    return {.microkernel = PanelMicrokernel::get_bf16_dot(),
            .transform_pixels = method.transform_pixels,
            .chain = kChain,
            .pass = kChain,
            .out = method.out,
            .nchw16c = nchw16c,
            .line = kPanel / 2,
            .band_bytes = bytes};
  }
  const bool short_chains = method.exact;
  const int64_t chain = short_chains ? short_chain(channels) : 64;
  return {.microkernel = PanelMicrokernel::get(),
          .transform_pixels = method.transform_pixels,
          .chain = chain,
          .pass = short_chains ? 4 * chain : chain,
          .out = method.out,
          .nchw16c = nchw16c,
          .short_chains = short_chains ? ShortChainMicrokernel::get(chain) : nullptr,
          .band_bytes = bytes};
}

struct Plan : WinogradPlan {
  const F32Method& method;
  bool nchw16c_output;
  bool has_bias;

  Plan(const F32Method& m, const ConvGeometry& g, bool bias, Nchw16cSides sides,
       int64_t bytes = WinogradForm::kBandBytes)
      : WinogradPlan(g, form_of(m, g.group_in, sides.input, bytes)),
        method(m),
        nchw16c_output(sides.output),
        has_bias(bias) {}
};

// The tiles of a panel on their way to the output.
struct Panel {
  const Run& run;
  const Plan& plan;
  const WinogradTiles& tiles;
  int64_t first;  // output channel, counted over the groups of an image
  float bias[kPanel];
};

// The sum of output channel |channel| at position (y, x) in the order of the reference.
float reference_sum(const Panel& p, int64_t channel, int64_t y, int64_t x) {
  const Window& w = p.plan.geometry.window;
  const int64_t channels = p.plan.geometry.group_in, size = w.image_size();
  const float* const image = p.run.input<float>(0) + p.tiles.image * channels * size;
  const float* const weights = p.run.packed<float>() + p.plan.weights.source_at();
  const int64_t side = p.plan.method.taps, taps = side * side;
  float sum = 0;
  for (int64_t tap = 0; tap < taps; ++tap) {
    const int64_t row = y - w.pads[0] + tap / side, column = x - w.pads[1] + tap % side;
    // Weights that are not finite make NaN of padding.
    const bool pad = row < 0 || row >= w.image[0] || column < 0 || column >= w.image[1];
    const int64_t pixel = row * w.image[1] + column;
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t at = p.plan.form.nchw16c ? (c / kPanel * size + pixel) * kPanel + c % kPanel
                                             : c * size + pixel;
      sum += weights[(channel * channels + c) * taps + tap] * (pad ? 0.0f : image[at]);
    }
  }
  return sum;
}

// Transforms the sums of |n| tiles from position (row, column) on to lines of 16 channels a
// position. Rows of positions are |pitch| apart. The reference's sums are taken where transformed
// ones are not to be trusted.
void transform_tiles(const Panel& p, const float* sums, int64_t row, int64_t column, int64_t n,
                     float* out, int64_t pitch) {
  const Window& w = p.plan.geometry.window;
  const F32Method& method = p.plan.method;
  const int64_t stride = p.plan.sums_stride(), outputs = p.plan.outputs(p.tiles.panel);
  for (int64_t i = 0; i < n;
       ++i, sums += kPanel, column += method.out, out += method.out * kPanel) {
    if (method.transform_sums(sums, stride, outputs, p.bias, out, pitch)) continue;
    for (int64_t y = 0; y < std::min(method.out, w.positions[0] - row); ++y)
      for (int64_t x = 0; x < std::min(method.out, w.positions[1] - column); ++x) {
        float* const to = out + y * pitch + x * kPanel;
        std::copy_n(p.bias, kPanel, to);
        for (int64_t c = 0; c < p.tiles.channels; ++c)
          to[c] += reference_sum(p, p.first + c, row + y, column + x);
      }
  }
}

// Puts |n| tiles from position (row, column) on to the output; |out| is the position (0, 0).
void put_tiles(const Panel& p, const float* sums, int64_t row, int64_t column, int64_t n,
               float* out) {
  const Window& w = p.plan.geometry.window;
  const int64_t width = w.positions[1], at = row * width + column, side = p.plan.method.out;
  const int64_t rows = std::min(side, w.positions[0] - row);
  const int64_t columns = std::min(side * n, width - column);
  if (p.plan.nchw16c_output && rows == side && columns == side * n)
    return transform_tiles(p, sums, row, column, n, out + at * kPanel, width * kPanel);
  constexpr int64_t kPitch = kPutTiles * kMostOut * kPanel;
  alignas(64) float lines[kMostOut * kPitch];
  transform_tiles(p, sums, row, column, n, lines, kPitch);
  for (int64_t i = 0; i < rows; ++i) {
    const float* const line = lines + i * kPitch;
    if (p.plan.nchw16c_output)
      std::copy_n(line, columns * kPanel, out + (at + i * width) * kPanel);
    else
      reorder_to_planes(out + at + i * width, w.position_count(), line, p.tiles.channels, columns);
  }
}

// Puts rows of tiles of a panel to the output and applies the epilogue.
void put_out(const Run& run, const Plan& plan, const WinogradTiles& tiles) {
  const ConvGeometry& g = plan.geometry;
  const int64_t side = plan.method.out;
  const int64_t height = g.window.positions[0], width = g.window.positions[1];
  const int64_t positions = height * width;
  Panel p{run, plan, tiles, tiles.channel % (g.groups * g.group_out), {}};
  if (plan.has_bias) std::copy_n(run.input<float>(2) + p.first, tiles.channels, p.bias);
  float* const out = run.output<float>(0) + tiles.channel * positions;
  const int64_t together = plan.nchw16c_output ? 1 : kPutTiles;
  const float* from = tiles.sums;
  for (int64_t y = tiles.begin; y < tiles.end; ++y)
    for (int64_t x = 0, n; x < plan.tiles_x; x += n, from += n * kPanel) {
      n = std::min(together, plan.tiles_x - x);
      put_tiles(p, from, y * side, x * side, n, out);
    }
  const int64_t step = plan.nchw16c_output ? kPanel : 1;
  const int64_t begin = tiles.begin * side * width;
  const int64_t end = std::min(tiles.end * side, height) * width;
  for (int64_t c = tiles.channel; c < tiles.channel + tiles.channels; c += step)
    run.apply_epilogue(c * positions + begin * step, c * positions + end * step);
}

Kernel kernel_of(std::shared_ptr<const Plan> made) {
  Kernel kernel;
  kernel.flops = made->geometry.flops();
  kernel.shared_bytes = made->shared_bytes();
  kernel.packed_alone = true;
  kernel.run = [plan = std::move(made)](const Run& run) {
    return run_winograd(run, *plan, "conv_winograd",
                        [&](const WinogradTiles& tiles, uint32_t) { put_out(run, *plan, tiles); });
  };
  return kernel;
}

Alternatives alternatives(bool all, const F32Method& method, const ConvGeometry& geometry,
                          bool bias, Nchw16cSides sides) {
  constexpr int64_t kBytes = WinogradForm::kBandBytes;
  std::vector<int64_t> sizes{kBytes / 2, kBytes * 2, kBytes * 4};
  for (int64_t bytes = kBytes / 8; all && bytes <= kBytes * 8; bytes += bytes / 2)
    sizes.push_back(bytes);
  Alternatives out{{{"band", Plan(method, geometry, bias, sides).band}}, {}};
  for (const int64_t bytes : sizes) {
    const auto other = std::make_shared<const Plan>(method, geometry, bias, sides, bytes);
    Parameters parameters{{"band", other->band}};
    if (out.lacks(parameters)) out.others.push_back({std::move(parameters), kernel_of(other)});
  }
  return out;
}

// The weights of the |outs| outputs of a panel, which see |channels| channels.
void pack_panel(const F32Method& method, const float* from, int64_t outs, int64_t channels,
                float* to, int64_t stride) {
  constexpr int64_t kBlock = 8;  // channels at a time
  constexpr int64_t kMostElements = 36;
  constexpr int64_t kMostTaps = 25;
  const int64_t elements = method.side * method.side, taps_of = method.taps * method.taps;
  if (channels % kPanel != 0 || method.pairs) std::fill_n(to, elements * stride, 0.0f);
  alignas(64) float taps[kMostTaps * kBlock * kPanel] = {}, made[kMostElements * kBlock * kPanel];
  for (int64_t c = 0; c < channels; c += kBlock) {
    const int64_t n = std::min(kBlock, channels - c);
    transpose(from + taps_of * c, taps_of * channels, outs, taps_of * n, taps, kPanel);
    for (int64_t i = 0; i < n; ++i)
      method.transform_taps(taps + taps_of * i * kPanel, made + i * kPanel, kBlock * kPanel);
    // Tile elements may share sets of the cache, so lines of one element are copied together.
    for (int64_t q = 0; q < elements; ++q) {
      const float* const lines = made + q * kBlock * kPanel;
      if (!method.pairs) {
        std::copy_n(lines, n * kPanel, to + q * stride + c * kPanel);
        continue;
      }
      auto* const pairs = reinterpret_cast<uint32_t*>(to + q * stride + c / 2 * kPanel);
      for (int64_t i = 0; i < n; i += 2)
        zip_bf16_pairs(lines + i * kPanel, i + 1 < n ? lines + (i + 1) * kPanel : nullptr, kPanel,
                       pairs + i / 2 * kPanel);
    }
  }
}

std::optional<PackedInput> pack(const F32Method& method, const SnapshotNode& node) {
  const auto dims = node.input_dims(1);
  const int64_t groups = node.attr_int("group", 1), outs = dims[0] / groups, channels = dims[1];
  const WinogradWeights weights{groups, ceil_div(outs, kPanel), method.side * method.side,
                                method.pairs ? bf16_pairs(channels) : channels};
  PackedInput packed;
  packed.input = 1;
  packed.recipe = message(method.pairs ? "conv_winograd_bf16/" : "conv_winograd/", method.out, "/",
                          method.taps, "/", groups, "/", outs, "x", channels);
  const int64_t source_size = dims[0] * channels * method.taps * method.taps;
  packed.bytes = weights.bytes(source_size);
  packed.pack = [=, &method](const void* source, void* memory) {
    const float* const from = static_cast<const float*>(source);
    float* const to = static_cast<float*>(memory);
    for (int64_t g = 0; g < groups; ++g)
      for (int64_t o = 0; o < outs; o += kPanel)
        pack_panel(method, from + (g * outs + o) * method.taps * method.taps * channels,
                   std::min(kPanel, outs - o), channels, to + weights.line(g, o / kPanel, 0),
                   weights.stride());
    std::copy_n(from, source_size, to + weights.source_at());
  };
  return packed_from_float32(node, std::move(packed));
}

Result<Kernel> make(const F32Method& method, const SnapshotNode& node, Nchw16cSides sides) {
  PFRT_ASSIGN(const ConvGeometry g, one_type_conv_geometry(node));
  Kernel kernel;
  if (g.batch == 0 || g.window.position_count() == 0) {
    kernel.run = [](const Run& run) { return run.stop(); };
    return kernel;
  }
  if (!has_code(g.group_in) || (method.pairs && PanelMicrokernel::get_bf16_dot() == nullptr))
    return error(Code::kUNSUPPORTED, "PFRT_ISA was lowered after the model was compiled");
  const bool bias = node.has_input(2);
  kernel = kernel_of(std::make_shared<const Plan>(method, g, bias, sides));
  kernel.alternatives = [&method, g, bias, sides](bool all) {
    return alternatives(all, method, g, bias, sides);
  };
  return in_float32(node, {0, 2}, std::move(kernel));
}

// Cost of an image of |height| x |width| positions by tiles of |method|, in element products of one
// tile: of products, and of weights, which are read for each image.
double cost(const F32Method& method, int64_t height, int64_t width) {
  constexpr double kWeights = 8;  // tiles whose products take as long as reading their weights
  const double tiles = static_cast<double>(ceil_div(height, method.out)) *
                       static_cast<double>(ceil_div(width, method.out));
  return static_cast<double>(method.side * method.side) * (tiles + kWeights);
}

// A tile takes 16 products in place of 36, but 16 weights in place of 9, which come from memory:
// too many with AVX2 for images of up to 5 x 5 positions.
bool tiles_of_2_pay(int64_t height, int64_t width) {
  constexpr int64_t kWeights = 24;  // positions whose products take as long as reading weights
  const int64_t tiles = ceil_div(height, kF32TilesOf2.out) * ceil_div(width, kF32TilesOf2.out);
  return !fitted_to_avx2() || 16 * (tiles + kWeights) < 9 * (height * width + kWeights);
}

bool tiles_of_4_pay(int64_t height, int64_t width) {
  return cost(kF32TilesOf4, height, width) < cost(kF32TilesOf2, height, width);
}

// Transforms take about as long as a third of the products.
bool tiles_by_5_pay(int64_t height, int64_t width) {
  const double plain = 25 * static_cast<double>(height) * static_cast<double>(width);
  return cost(kF32TilesOf2By5, height, width) * 4 / 3 < plain;
}

// Why a convolution of |side| x |side| taps is left to others, for any precision.
std::string refuse(const KernelRequest& node, int64_t side) {
  constexpr const char* kNoCode = "the machine, or PFRT_ISA, has no AVX2";
  if (isa() < Isa::kAvx2) return kNoCode;
  if (is_plain(node.precision())) return "precision ieee takes no transformed numbers";
  if (!has_plain_taps(node, 1, side))
    return message("Winograd tiles are for ", side, " x ", side,
                   " taps with strides and dilations of 1");
  const auto weights = node.input_dims(1);
  if (SnapshotNode::elements(weights) <= 0 || !node.is_constant(1))
    return "tiles are for constant weights";
  if (weights[1] < kPanel) return message("tiles are of ", kPanel, " channels or more");
  const int64_t groups = node.attr_int("group", 1);
  const int64_t least = side == 5 ? kLeastInputsOf5 : kLeastInputs;
  if (groups < 1 || weights[0] < groups) return "there are fewer outputs than groups";
  const int64_t least_outputs = side == 5 ? kLeastOutputsOf5 : 1;
  if (!pays(weights[1] >= least && weights[0] / groups >= least_outputs))
    return message("tiles are for many channels, not ", weights[1], " to ", weights[0]);
  return has_code(weights[1]) ? "" : kNoCode;
}

// Refuses a node whose positions are known and too few.
std::string refuse_positions(const KernelRequest& node, bool (*gain)(int64_t, int64_t)) {
  const auto y = node.output_dims(0);
  const bool known = y.size() == 4 && y[2] > 0 && y[3] > 0;
  return known && !pays(gain(y[2], y[3]))
             ? message("tiles do not pay for ", y[2], " x ", y[3], " positions")
             : "";
}

// Refuses a node for methods that are not exact.
std::string refuse_inexact(const KernelRequest& node, int64_t side,
                           bool (*gain)(int64_t height, int64_t width)) {
  if (!is_plain(node.precision()) && node.precision() != Precision::kFast &&
      node.precision() != Precision::kBfloat16)
    return "larger tiles are less exact than precision fp32";
  std::string why = refuse(node, side);
  if (!why.empty()) return why;
  if (node.precision() == Precision::kBfloat16 && takes_bf16_dot(node))
    return "products of bfloat16 pairs are faster";
  return refuse_positions(node, gain);
}

}  // namespace

std::string refuse_conv_winograd(const KernelRequest& node) {
  std::string why = refuse(node, 3);
  return why.empty() ? refuse_positions(node, tiles_of_2_pay) : why;
}

std::string refuse_conv_winograd_4x4(const KernelRequest& node) {
  return refuse_inexact(node, 3, tiles_of_4_pay);
}

std::string refuse_conv_winograd_5x5(const KernelRequest& node) {
  return refuse_inexact(node, 5, tiles_by_5_pay);
}

std::string refuse_conv_winograd_bf16(const KernelRequest& node) {
  // Transformed factors are rounded even where those of the node are bfloat16.
  if (node.precision() != Precision::kBfloat16 || !takes_bf16_dot(node))
    return "precision is not bf16, or the machine, or PFRT_ISA, has no AVX512-BF16, or tiles";
  return refuse(node, 3);
}

std::optional<PackedInput> pack_conv_winograd_bf16(const SnapshotNode& node) {
  return pack(kBf16TilesOf2, node);
}
std::optional<PackedInput> pack_conv_winograd(const SnapshotNode& node) {
  return pack(kF32TilesOf2, node);
}
std::optional<PackedInput> pack_conv_winograd_4x4(const SnapshotNode& node) {
  return pack(kF32TilesOf4, node);
}
std::optional<PackedInput> pack_conv_winograd_5x5(const SnapshotNode& node) {
  return pack(kF32TilesOf2By5, node);
}

Result<Kernel> make_conv_winograd_bf16_nchw16c(const SnapshotNode& node, Nchw16cSides sides) {
  return make(kBf16TilesOf2, node, sides);
}
Result<Kernel> make_conv_winograd_nchw16c(const SnapshotNode& node, Nchw16cSides sides) {
  return make(kF32TilesOf2, node, sides);
}
Result<Kernel> make_conv_winograd_4x4_nchw16c(const SnapshotNode& node, Nchw16cSides sides) {
  return make(kF32TilesOf4, node, sides);
}
Result<Kernel> make_conv_winograd_5x5_nchw16c(const SnapshotNode& node, Nchw16cSides sides) {
  return make(kF32TilesOf2By5, node, sides);
}

Result<Kernel> make_conv_winograd_bf16(const KernelRequest& node) {
  return make_conv_winograd_bf16_nchw16c(node, {});
}
Result<Kernel> make_conv_winograd(const KernelRequest& node) {
  return make_conv_winograd_nchw16c(node, {});
}
Result<Kernel> make_conv_winograd_4x4(const KernelRequest& node) {
  return make_conv_winograd_4x4_nchw16c(node, {});
}
Result<Kernel> make_conv_winograd_5x5(const KernelRequest& node) {
  return make_conv_winograd_5x5_nchw16c(node, {});
}

}  // namespace pfrt::cpu
