// SPDX-License-Identifier: Apache-2.0
//
// ConvTranspose whose kernel is twice as long as its stride: each phase (phases.h) is a convolution
// of 2 x 2 taps over the same pixels, which Winograd's F(2 x 2, 2 x 2) makes of 9 products in place
// of 16. Along one dimension, of pixels d and taps g,
//   (d0 - d1) g0, d1 (g0 + g1), (d2 - d1) g1
// give d0 g0 + d1 g1, the sum of the first two, and d1 g0 + d2 g1, the sum of the last two. So a
// site's sum is made only of pixels that it sees. Pixels are transformed once for all phases.
#include <immintrin.h>

#include <algorithm>
#include <memory>

#include "providers/cpu/epilogue/in_float32.h"
#include "providers/cpu/isa/target.h"
#include "providers/cpu/jit/panel_microkernel.h"
#include "providers/cpu/kernels/conv/phases.h"
#include "providers/cpu/row/ceil_div.h"
#include "providers/cpu/row/load.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kPanel = PanelMicrokernel::kPanel;
constexpr int64_t kSide = 3, kOut = 2, kTileElements = kSide * kSide;  // of a tile of sites
constexpr int64_t kChain = 16, kPass = 64;  // k added up in a register; k of a call
constexpr int64_t kBandBytes = 1 << 20;     // of transformed pixels; results do not depend on it
constexpr int64_t kLeastTiles = 56;         // of a band: weights are read once a band
constexpr int64_t kLeastInputs = 128;       // below, the reference has smaller errors
constexpr int64_t kLeastOutputs = 16;
constexpr int64_t kMostElements = 4 << 20;  // of weights, which take longer to read than they save

struct Plan {
  ConvGeometry geometry;
  Phases phases;
  const PanelMicrokernel* microkernel;
  pfrt_dtype weights_type;
  bool has_bias;
  int64_t chunks, panels;  // of 16 input and output channels of a group
  int64_t columns;         // panels of all phases
  int64_t tiles_y, tiles_x;
  int64_t band;  // rows of tiles
  ImageBand lines;
  std::vector<int64_t> offsets;

  Plan(const ConvGeometry& g, pfrt_dtype weights, bool bias)
      : geometry(g),
        phases(g.window, g.group_in),
        microkernel(PanelMicrokernel::get()),
        weights_type(weights),
        has_bias(bias),
        chunks(ceil_div(g.group_in, kPanel)),
        panels(ceil_div(g.group_out, kPanel)),
        columns(panels * phases.y.stride * phases.x.stride),
        tiles_y(ceil_div(phases.y.sites, kOut)),
        tiles_x(ceil_div(phases.x.sites, kOut)),
        band(band_rows()),
        lines(whole_tiles(phases.window()), {g.group_in, 2, 2, false, kPanel}, kOut * band, false) {
    for (int64_t k = 0; k < chunks * kPanel; k += kChain)
      offsets.push_back(k / kPanel * band_tiles() * kPanel + k % kPanel);
  }

  int64_t band_tiles() const { return band * tiles_x; }
  // From a tile element to the next: transformed pixels, sums, weights of a panel.
  int64_t pixels_stride() const { return chunks * band_tiles() * kPanel; }
  int64_t sums_stride() const { return columns * band_tiles() * kPanel; }
  int64_t weights_stride() const { return chunks * kPanel * kPanel; }
  // Where things lie in the memory of the step, in elements.
  int64_t pixels_at() const { return static_cast<int64_t>((lines.bytes() + 63) / 64 * 16); }
  int64_t sums_at() const { return pixels_at() + kTileElements * pixels_stride(); }
  uint64_t shared_bytes() const {
    return static_cast<uint64_t>(sums_at() + kTileElements * sums_stride()) * sizeof(float);
  }
  // Of the output of a row of tiles.
  int64_t out_row() const { return kOut * tiles_x * phases.x.stride * kPanel; }
  uint64_t scratch_bytes() const {
    return static_cast<uint64_t>(kOut * phases.y.stride * out_row()) * sizeof(float);
  }

 private:
  int64_t band_rows() const {
    const int64_t tile_bytes = kTileElements * (chunks + columns) * kPanel * 4;
    const int64_t tiles = std::max(kBandBytes / tile_bytes, kLeastTiles);
    return ceil_div(tiles_y, ceil_div(tiles_y, std::max<int64_t>(1, tiles / tiles_x)));
  }
  Window whole_tiles(Window w) const {
    w.positions = {tiles_y * kOut, tiles_x * kOut};
    return w;
  }
};

struct Three {
  __m256 v[kSide];
};

PFRT_AVX2_FMA inline Three input_line(__m256 a, __m256 b, __m256 c) {
  return {{_mm256_sub_ps(a, b), b, _mm256_sub_ps(c, b)}};
}

// 3 x 3 pixels of 16 channels, |row| apart, to the 9 elements of a tile, |stride| apart.
PFRT_AVX2_FMA void transform_pixels(const float* in, int64_t row, float* out, int64_t stride) {
  for (int64_t half = 0; half < kPanel; half += 8) {
    Three columns[kSide];
#pragma GCC unroll 3
    for (int64_t x = 0; x < kSide; ++x) {
      const float* const at = in + kPanel * x + half;
      columns[x] =
          input_line(_mm256_loadu_ps(at), _mm256_loadu_ps(at + row), _mm256_loadu_ps(at + 2 * row));
    }
#pragma GCC unroll 3
    for (int64_t y = 0; y < kSide; ++y) {
      const Three line = input_line(columns[0].v[y], columns[1].v[y], columns[2].v[y]);
#pragma GCC unroll 3
      for (int64_t x = 0; x < kSide; ++x)
        _mm256_storeu_ps(out + (kSide * y + x) * stride + half, line.v[x]);
    }
  }
}

// The 9 elements of a tile of sums to 2 x 2 sites of 16 channels, |row| and |step| apart. False
// where one is not finite: with infinite pixels the differences of a transform are NaN where the
// sum itself is infinite.
PFRT_AVX2_FMA bool transform_sums(const float* in, int64_t stride, const float* bias, float* out,
                                  int64_t row, int64_t step) {
  __m256 nothing = _mm256_setzero_ps();
  for (int64_t half = 0; half < kPanel; half += 8) {
    __m256 upper[kSide], lower[kSide];
#pragma GCC unroll 3
    for (int64_t x = 0; x < kSide; ++x) {
      const float* const at = in + x * stride + half;
      const __m256 middle = _mm256_loadu_ps(at + kSide * stride);
      upper[x] = _mm256_add_ps(_mm256_loadu_ps(at), middle);
      lower[x] = _mm256_add_ps(middle, _mm256_loadu_ps(at + 2 * kSide * stride));
    }
    const __m256 add = _mm256_loadu_ps(bias + half);
#pragma GCC unroll 2
    for (int64_t y = 0; y < kOut; ++y) {
      const __m256* const line = y == 0 ? upper : lower;
      const __m256 left = _mm256_add_ps(line[0], line[1]), right = _mm256_add_ps(line[1], line[2]);
      nothing = _mm256_add_ps(
          nothing, _mm256_add_ps(_mm256_sub_ps(left, left), _mm256_sub_ps(right, right)));
      float* const to = out + y * row + half;
      _mm256_storeu_ps(to, _mm256_add_ps(add, left));
      _mm256_storeu_ps(to + step, _mm256_add_ps(add, right));
    }
  }
  return _mm256_movemask_ps(_mm256_cmp_ps(nothing, nothing, _CMP_UNORD_Q)) == 0;
}

void multiply(const Plan& plan, int64_t element, int64_t column, int64_t count, int64_t tiles,
              const float* pixels, const float* weights, float* sums) {
  static constexpr float kNothing[PanelMicrokernel::kMostPanels * kPanel] = {};
  PanelMicrokernel::Blocks p{};
  p.a_row = p.c_row = kPanel;
  p.depth = kChain;
  p.chain = 1;
  p.b_panel = kTileElements * plan.weights_stride();
  p.c_panel = plan.band_tiles() * kPanel;
  const PanelMicrokernel::RowBlocks row_blocks = plan.microkernel->row_blocks(tiles);
  const auto chunks = static_cast<int64_t>(plan.offsets.size());
  constexpr int64_t kMost = kPass / kChain;
  for (int64_t chunk = 0; chunk < chunks; chunk += kMost) {
    p.chunks = std::min(kMost, chunks - chunk);
    p.offsets = plan.offsets.data() + chunk;
    p.a = pixels + element * plan.pixels_stride();
    p.b = weights + (column * kTileElements + element) * plan.weights_stride() +
          chunk * kChain * kPanel;
    p.c = sums + element * plan.sums_stride() + column * p.c_panel;
    p.start = chunk == 0 ? kNothing : nullptr;
    plan.microkernel->run(row_blocks, count, p);
  }
}

// The reference: sums of |count| channels from |first| on of a group, at a site, to |out|.
void reference_site(const Run& run, const Plan& plan, int64_t image, int64_t first, int64_t count,
                    const float* bias, const int64_t (&site)[2], const int64_t (&phase)[2],
                    float* out) {
  const ConvGeometry& g = plan.geometry;
  const PhaseAxis &ay = plan.phases.y, &ax = plan.phases.x;
  const int64_t group = image % g.groups, taps = ay.kernel * ax.kernel, pixels = ay.in * ax.in;
  const LoadFn<float> load = load_fn<float>(plan.weights_type);
  const float* const in = run.input<float>(0) + image * g.group_in * pixels;
  std::copy_n(bias, kPanel, out);
  for (int64_t by = 0; by < ay.taps; ++by)
    for (int64_t bx = 0; bx < ax.taps; ++bx) {
      const int64_t y = ay.first + site[0] - by, x = ax.first + site[1] - bx;
      if (y < 0 || y >= ay.in || x < 0 || x >= ax.in) continue;
      const int64_t tap = ay.tap(phase[0], by) * ax.kernel + ax.tap(phase[1], bx);
      for (int64_t c = 0; c < g.group_in; ++c) {
        float weights[kPanel];
        const int64_t row = (group * g.group_in + c) * g.group_out + first;
        load(weights, run.input(1), row * taps + tap, taps, count);
        const float pixel = in[c * pixels + y * ax.in + x];
        for (int64_t o = 0; o < count; ++o) out[o] += weights[o] * pixel;
      }
    }
}

// Puts row |y| of the band's tiles of a panel, with all phases, to the output.
void put_out(const Run& run, const Plan& plan, int64_t image, int64_t panel, int64_t top, int64_t y,
             const float* sums, float* scratch) {
  const ConvGeometry& g = plan.geometry;
  const int64_t sy = plan.phases.y.stride, sx = plan.phases.x.stride, first = panel * kPanel;
  const int64_t count = std::min(kPanel, g.group_out - first), row = plan.out_row();
  float bias[kPanel] = {};
  if (plan.has_bias)
    std::copy_n(run.input<float>(2) + image % g.groups * g.group_out + first, count, bias);
  for (int64_t fy = 0; fy < sy; ++fy)
    for (int64_t fx = 0; fx < sx; ++fx) {
      const int64_t column = (fy * sx + fx) * plan.panels + panel;
      const float* from = sums + (column * plan.band_tiles() + y * plan.tiles_x) * kPanel;
      for (int64_t x = 0; x < plan.tiles_x; ++x, from += kPanel) {
        float* const to = scratch + fy * row + (kOut * x * sx + fx) * kPanel;
        if (transform_sums(from, plan.sums_stride(), bias, to, sy * row, sx * kPanel)) continue;
        for (int64_t i = 0; i < kOut * kOut; ++i)
          reference_site(run, plan, image, first, count, bias,
                         {(top + y) * kOut + i / kOut, x * kOut + i % kOut}, {fy, fx},
                         to + i / kOut * sy * row + i % kOut * sx * kPanel);
      }
    }
  const int64_t site = (top + y) * kOut;
  put_sites(
      run, plan.phases, g.group_out,
      {image, panel, 1, site, std::min(kOut, plan.phases.y.sites - site), 0, plan.phases.x.sites},
      scratch, row, 0);
}

void run_band(const Run& run, const Plan& plan, int64_t image, int64_t top) {
  const ConvGeometry& g = plan.geometry;
  float* const lines = run.shared<float>();
  float *const pixels = lines + plan.pixels_at(), *const sums = lines + plan.sums_at();
  const float* const in =
      run.input<float>(0) + image * g.group_in * plan.phases.y.in * plan.phases.x.in;
  run.parallel(plan.lines.tasks(),
               [&](int64_t i, uint32_t) { plan.lines.fill(i, top * kOut, in, lines); });
  const int64_t rows = std::min(plan.band, plan.tiles_y - top), pitch = plan.lines.row_step();
  run.parallel(plan.chunks * rows, [&](int64_t i, uint32_t) {
    const int64_t y = i % rows, chunk = i / rows;
    const float* from =
        lines + plan.lines.offsets()[static_cast<size_t>(4 * chunk)] + kOut * y * pitch;
    float* to = pixels + (chunk * plan.band_tiles() + y * plan.tiles_x) * kPanel;
    for (int64_t x = 0; x < plan.tiles_x; ++x, from += kOut * kPanel, to += kPanel)
      transform_pixels(from, pitch, to, plan.pixels_stride());
  });
  const int64_t columns = ceil_div(plan.columns, plan.microkernel->panels());
  const float* const weights =
      run.packed<float>() + image % g.groups * plan.columns * kTileElements * plan.weights_stride();
  run.parallel(kTileElements * columns, [&](int64_t i, uint32_t) {
    if (run.stopped()) return;
    const int64_t column = i % columns * plan.microkernel->panels();
    multiply(plan, i / columns, column, std::min(plan.microkernel->panels(), plan.columns - column),
             rows * plan.tiles_x, pixels, weights, sums);
  });
  if (run.stopped()) return;
  run.parallel(plan.panels * rows, [&](int64_t i, uint32_t worker) {
    if (!run.stopped())
      put_out(run, plan, image, i / rows, top, i % rows, sums, run.scratch<float>(worker));
  });
}

// Two taps along a dimension, transformed.
void transform(double a, double b, double (&out)[kSide]) {
  out[0] = a;
  out[1] = a + b;
  out[2] = b;
}

}  // namespace

std::string refuse_conv_transpose_winograd(const KernelRequest& node) {
  if (std::string why = refuse_conv_transpose_direct(node); !why.empty()) return why;
  if (node.precision() == Precision::kIeee) return "precision ieee takes no transformed numbers";
  const auto weights = node.input_dims(1), strides = node.attr_ints("strides");
  if (weights.size() != 4 || strides.size() != 2 || weights[2] != 2 * strides[0] ||
      weights[3] != 2 * strides[1])
    return "the kernel is not twice as long as its strides";
  const int64_t channels = weights[0] / node.attr_int("group", 1);
  if (channels < kLeastInputs || weights[1] < kLeastOutputs)
    return message("tiles are for many channels, not ", channels, " to ", weights[1]);
  if (SnapshotNode::elements(weights) > kMostElements / kTileElements * kOut * kOut)
    return "so many transformed weights take longer to read than they save";
  return "";
}

std::optional<PackedInput> pack_conv_transpose_winograd(const SnapshotNode& node) {
  const auto dims = node.input_dims(1), strides = node.attr_ints("strides");
  const int64_t groups = node.attr_int("group", 1), channels = dims[0] / groups, outs = dims[1];
  const int64_t sy = strides[0], sx = strides[1], panels = ceil_div(outs, kPanel);
  const int64_t stride = ceil_div(channels, kPanel) * kPanel * kPanel;
  const int64_t all = panels * sy * sx * kTileElements * stride;  // of a group
  PackedInput packed;
  packed.input = 1;
  packed.recipe = message("phase_winograd/", groups, "/", outs, "x", channels, "/", sy, "x", sx);
  packed.bytes = static_cast<uint64_t>(groups * all) * sizeof(float);
  packed.pack = [=](const void* source, void* memory) {
    const float* from = static_cast<const float*>(source);
    float* to = static_cast<float*>(memory);
    std::fill_n(to, groups * all, 0.0f);
    for (int64_t g = 0; g < groups; ++g, to += all)
      for (int64_t c = 0; c < channels; ++c)
        for (int64_t o = 0; o < outs; ++o, from += 4 * sy * sx)
          for (int64_t phase = 0; phase < sy * sx; ++phase) {
            // The later tap sees the earlier pixel, so taps are taken in reverse.
            const float* const taps = from + phase / sx * 2 * sx + phase % sx;
            double rows[2][kSide], elements[kSide];
            for (const int64_t y : {0, 1})
              transform(static_cast<double>(taps[(1 - y) * 2 * sx * sy + sx]),
                        static_cast<double>(taps[(1 - y) * 2 * sx * sy]), rows[y]);
            float* const column = to + ((phase * panels + o / kPanel) * kTileElements) * stride +
                                  c * kPanel + o % kPanel;
            for (int64_t x = 0; x < kSide; ++x) {
              transform(rows[0][x], rows[1][x], elements);
              for (int64_t y = 0; y < kSide; ++y)
                column[(kSide * y + x) * stride] = static_cast<float>(elements[y]);
            }
          }
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
  const auto plan = std::make_shared<const Plan>(g, node.input_dtype(1), node.has_input(2));
  kernel.flops = g.flops();
  kernel.shared_bytes = plan->shared_bytes();
  kernel.scratch_bytes = plan->scratch_bytes();
  kernel.run = [plan](const Run& run) -> pfrt_code {
    if (run.packed<float>() == nullptr) return fail_unpacked(run, "conv_transpose_winograd");
    const ConvGeometry& geo = plan->geometry;
    for (int64_t image = 0; image < geo.batch * geo.groups; ++image)
      for (int64_t top = 0; top < plan->tiles_y && !run.stopped(); top += plan->band)
        run_band(run, *plan, image, top);
    return run.stop();
  };
  return in_float32(node, {0, 2}, std::move(kernel));
}

}  // namespace pfrt::cpu
