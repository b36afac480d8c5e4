// SPDX-License-Identifier: Apache-2.0
//
// Convolutions of 3 x 3 taps by Winograd's F(2 x 2, 3 x 3): a tile of 2 x 2 positions sees 4 x 4
// pixels, and 16 products of transformed numbers take the place of 36. Weights are transformed
// once, in double precision. Sums are added in short chains, so that errors are about those of sums
// without transforms (bench/models/error.sh). After A. Lavin and S. Gray, "Fast algorithms for
// convolutional neural networks", 2015.
#include <immintrin.h>

#include <algorithm>
#include <memory>

#include "providers/cpu/epilogue/in_float32.h"
#include "providers/cpu/isa/target.h"
#include "providers/cpu/jit/panel_microkernel.h"
#include "providers/cpu/kernels/conv/geometry.h"
#include "providers/cpu/kernels/conv/image_band.h"
#include "providers/cpu/kernels/matmul/transpose.h"
#include "providers/cpu/kernels/window/reorder.h"
#include "providers/cpu/row/ceil_div.h"
#include "providers/cpu/row/load.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kPanel = PanelMicrokernel::kPanel;
constexpr int64_t kSide = 4, kOut = 2, kTileElements = kSide * kSide;  // of a tile
constexpr int64_t kPass = 64;            // k of a call of the microkernel, several chains
constexpr int64_t kBandBytes = 1 << 20;  // of transformed pixels; results do not depend on it
constexpr int64_t kLeastTiles = 56;      // of a band: weights are read once a band
constexpr int64_t kLeastInputs = 32,
                  kLeastOutputs = 24;  // with fewer the transforms cost more than they save

struct Plan {
  ConvGeometry geometry;
  Nchw16cSides nchw16c;
  const PanelMicrokernel* microkernel;
  pfrt_dtype weights_type;
  bool has_bias;
  int64_t chain;           // k added up in a register before the sum goes to memory
  int64_t chunks, panels;  // of 16 input and output channels of a group
  int64_t tiles_y, tiles_x;
  int64_t band;     // rows of tiles
  ImageBand lines;  // of an image that is not nChw16c
  std::vector<int64_t> offsets;

  Plan(const ConvGeometry& g, pfrt_dtype weights, bool bias, Nchw16cSides sides,
       int64_t band_bytes = kBandBytes)
      : geometry(g),
        nchw16c(sides),
        microkernel(PanelMicrokernel::get()),
        weights_type(weights),
        has_bias(bias),
        chain(chain_of(g.group_in)),
        chunks(ceil_div(g.group_in, kPanel)),
        panels(ceil_div(g.group_out, kPanel)),
        tiles_y(ceil_div(g.window.positions[0], kOut)),
        tiles_x(ceil_div(g.window.positions[1], kOut)),
        band(band_rows(band_bytes)),
        lines(whole_tiles(g.window), {g.group_in, 3, 3, false, kPanel}, kOut * band, sides.input) {
    for (int64_t k = 0; k < chunks * kPanel; k += chain)
      offsets.push_back(k / kPanel * band_tiles() * kPanel + k % kPanel);
  }

  int64_t band_tiles() const { return band * tiles_x; }
  // From a tile element to the next: transformed pixels, sums.
  int64_t pixels_stride() const { return apart(chunks); }
  int64_t sums_stride() const { return apart(panels); }
  // How many columns of |panel| are computed: 8 where the other 8 are padding and the microkernel
  // can leave them out, else 16.
  int64_t columns(int64_t panel) const {
    return microkernel->half_rows() > 0 && geometry.group_out - panel * kPanel <= kPanel / 2
               ? kPanel / 2
               : kPanel;
  }
  int64_t weights_stride() const { return chunks * kPanel * kPanel; }  // of a panel
  uint64_t lines_bytes() const { return nchw16c.input ? 0 : (lines.bytes() + 63) / 64 * 64; }
  uint64_t bytes() const {
    return lines_bytes() +
           static_cast<uint64_t>(kTileElements * (pixels_stride() + sums_stride()) * 4);
  }

 private:
  // A transform writes all tile elements at once. An odd number of cache lines from one to the next
  // puts them into different sets of the cache.
  int64_t apart(int64_t blocks) const { return (blocks * band_tiles() | 1) * kPanel; }
  // With few channels the roundings of the transforms weigh more, and shorter chains make up for
  // it.
  static int64_t chain_of(int64_t channels) { return channels <= 128 ? 8 : 16; }
  int64_t band_rows(int64_t bytes) const {
    const int64_t tile_bytes = kTileElements * (chunks + panels) * kPanel * 4;
    const int64_t tiles = std::max(bytes / tile_bytes, kLeastTiles);
    const int64_t rows = std::max<int64_t>(1, tiles / tiles_x);
    return ceil_div(tiles_y, ceil_div(tiles_y, rows));
  }
  Window whole_tiles(Window w) const {
    w.positions = {tiles_y * kOut, tiles_x * kOut};
    return w;
  }
};

// The sums, or differences, of two rows of four pixels of 8 channels, transformed along the row: to
// four elements.
template <bool kAdd>
PFRT_AVX2_FMA inline void transform_line(const float* upper, const float* lower, float* out,
                                         int64_t stride) {
  __m256 v[4];
#pragma GCC unroll 4
  for (int64_t x = 0; x < 4; ++x) {
    const __m256 above = _mm256_loadu_ps(upper + kPanel * x),
                 below = _mm256_loadu_ps(lower + kPanel * x);
    v[x] = kAdd ? _mm256_add_ps(above, below) : _mm256_sub_ps(above, below);
  }
  _mm256_storeu_ps(out, _mm256_sub_ps(v[0], v[2]));
  _mm256_storeu_ps(out + stride, _mm256_add_ps(v[1], v[2]));
  _mm256_storeu_ps(out + 2 * stride, _mm256_sub_ps(v[2], v[1]));
  _mm256_storeu_ps(out + 3 * stride, _mm256_sub_ps(v[1], v[3]));
}

// 4 x 4 pixels of 16 channels, |row| apart, to the 16 elements of a tile, |stride| apart.
PFRT_AVX2_FMA void transform_pixels(const float* in, int64_t row, float* out, int64_t stride) {
  for (int64_t half = 0; half < kPanel; half += 8) {
    // Row by row of the tile: all 16 elements do not fit the registers.
    const float *const a = in + half, *const b = a + row, *const c = b + row, *const d = c + row;
    float* to = out + half;
    transform_line<false>(a, c, to, stride);
    transform_line<true>(b, c, to += 4 * stride, stride);
    transform_line<false>(c, b, to += 4 * stride, stride);
    transform_line<false>(b, d, to += 4 * stride, stride);
  }
}

PFRT_AVX2_FMA inline __m256 magnitude(__m256 x) {
  return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x);
}

PFRT_AVX2_FMA inline float greatest(__m256 x) {
  __m128 most = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  most = _mm_max_ps(most, _mm_movehl_ps(most, most));
  most = _mm_max_ss(most, _mm_movehdup_ps(most));
  return _mm_cvtss_f32(most);
}

// The 16 elements of a tile of sums to 2 x 2 positions of |columns| channels, |row| apart. False
// where the results are not to be trusted. That is so where one is not finite. It is also so where
// elements are large and a result is very small beside them: then the elements come from pixels
// that the position does not see, and the result is what their roundings left. Where elements are
// of ordinary size such roundings are too small to matter, and a position that sees only zeros is
// nothing unusual.
PFRT_AVX2_FMA bool transform_sums(const float* in, int64_t stride, int64_t columns,
                                  const float* bias, float* out, int64_t row) {
  constexpr float kRange = 4096, kLarge = 65536;
  __m256 nothing = _mm256_setzero_ps(), elements = nothing;
  __m256 sizes[kOut * kOut] = {nothing, nothing, nothing, nothing};
  for (int64_t half = 0; half < columns; half += 8) {
    __m256 upper[4], lower[4];
#pragma GCC unroll 4
    for (int64_t x = 0; x < 4; ++x) {
      const float* const at = in + x * stride + half;
      const __m256 a = _mm256_loadu_ps(at), b = _mm256_loadu_ps(at + 4 * stride),
                   c = _mm256_loadu_ps(at + 8 * stride), d = _mm256_loadu_ps(at + 12 * stride);
      upper[x] = _mm256_add_ps(a, _mm256_add_ps(b, c));
      lower[x] = _mm256_sub_ps(_mm256_sub_ps(b, c), d);
      elements = _mm256_max_ps(elements, _mm256_max_ps(_mm256_max_ps(magnitude(a), magnitude(b)),
                                                       _mm256_max_ps(magnitude(c), magnitude(d))));
    }
    const __m256 add = _mm256_loadu_ps(bias + half);
#pragma GCC unroll 2
    for (int64_t y = 0; y < 2; ++y) {
      const __m256* const line = y == 0 ? upper : lower;
      const __m256 left = _mm256_add_ps(line[0], _mm256_add_ps(line[1], line[2]));
      const __m256 right = _mm256_sub_ps(_mm256_sub_ps(line[1], line[2]), line[3]);
      nothing = _mm256_add_ps(
          nothing, _mm256_add_ps(_mm256_sub_ps(left, left), _mm256_sub_ps(right, right)));
      sizes[2 * y] = _mm256_max_ps(sizes[2 * y], magnitude(left));
      sizes[2 * y + 1] = _mm256_max_ps(sizes[2 * y + 1], magnitude(right));
      float* const to = out + y * row + half;
      _mm256_storeu_ps(to, _mm256_add_ps(add, left));
      _mm256_storeu_ps(to + kPanel, _mm256_add_ps(add, right));
    }
  }
  if (_mm256_movemask_ps(_mm256_cmp_ps(nothing, nothing, _CMP_UNORD_Q)) != 0) return false;
  const float most = greatest(elements), least = most / kRange;
  if (most <= kLarge) return true;
  return greatest(sizes[0]) >= least && greatest(sizes[1]) >= least &&
         greatest(sizes[2]) >= least && greatest(sizes[3]) >= least;
}

// Transforms 16 channels of row |y| of the band's tiles. |image| is the image in nChw16c, or the
// lines of the band.
void transform_row(const Plan& plan, int64_t top, int64_t y, int64_t chunk, const float* image,
                   float* out) {
  const Window& w = plan.geometry.window;
  const int64_t stride = plan.pixels_stride();
  float* to = out + (chunk * plan.band_tiles() + y * plan.tiles_x) * kPanel;
  if (!plan.nchw16c.input) {
    const int64_t pitch = plan.lines.row_step();
    const float* from =
        image + plan.lines.offsets()[static_cast<size_t>(9 * chunk)] + kOut * y * pitch;
    for (int64_t x = 0; x < plan.tiles_x; ++x, from += kOut * kPanel, to += kPanel)
      transform_pixels(from, pitch, to, stride);
    return;
  }
  const int64_t height = w.image[0], width = w.image[1], pitch = width * kPanel;
  const float* const block = image + chunk * height * pitch;
  const int64_t row = (top + y) * kOut - w.pads[0];
  for (int64_t x = 0; x < plan.tiles_x; ++x, to += kPanel) {
    const int64_t column = x * kOut - w.pads[1];
    if (row >= 0 && row + kSide <= height && column >= 0 && column + kSide <= width) {
      transform_pixels(block + row * pitch + column * kPanel, pitch, to, stride);
      continue;
    }
    alignas(64) float pixels[kSide * kSide * kPanel] = {};
    const int64_t begin = std::max<int64_t>(column, 0), end = std::min(column + kSide, width);
    for (int64_t i = std::max<int64_t>(row, 0); i < std::min(row + kSide, height) && begin < end;
         ++i)
      std::copy_n(block + i * pitch + begin * kPanel, (end - begin) * kPanel,
                  pixels + ((i - row) * kSide + begin - column) * kPanel);
    transform_pixels(pixels, kSide * kPanel, to, stride);
  }
}

// The sums of a tile element for |count| panels from |panel| on.
void multiply(const Plan& plan, int64_t element, int64_t panel, int64_t count, int64_t tiles,
              const float* pixels, const float* weights, float* sums) {
  static constexpr float kNothing[PanelMicrokernel::kMostPanels * kPanel] = {};
  PanelMicrokernel::Blocks p{};
  p.a_row = p.c_row = kPanel;
  p.depth = plan.chain;
  p.chain = 1;
  p.b_panel = kTileElements * plan.weights_stride();
  p.c_panel = plan.band_tiles() * kPanel;
  const bool half = count == 1 && plan.columns(panel) < kPanel;
  const PanelMicrokernel::RowBlocks row_blocks = PanelMicrokernel::row_blocks(
      tiles, half ? plan.microkernel->half_rows() : plan.microkernel->rows());
  const auto chunks = static_cast<int64_t>(plan.offsets.size());
  const int64_t most = kPass / plan.chain;
  for (int64_t chunk = 0; chunk < chunks; chunk += most) {
    p.chunks = std::min(most, chunks - chunk);
    p.offsets = plan.offsets.data() + chunk;
    p.a = pixels + element * plan.pixels_stride();
    p.b = weights + (panel * kTileElements + element) * plan.weights_stride() +
          chunk * plan.chain * kPanel;
    p.c = sums + element * plan.sums_stride() + panel * p.c_panel;
    p.start = chunk == 0 ? kNothing : nullptr;
    if (half)
      plan.microkernel->run_half(row_blocks, p);
    else
      plan.microkernel->run(row_blocks, count, p);
  }
}

// Where transformed sums are not to be trusted, the reference's are taken. A position of |count|
// channels, the weights of which start at element |first| of |weights|.
void reference_position(const Plan& plan, const float* image, const void* weights, int64_t first,
                        int64_t count, const float* bias, int64_t y, int64_t x, float* out) {
  const Window& w = plan.geometry.window;
  const int64_t channels = plan.geometry.group_in, size = w.image_size();
  const LoadFn<float> load = load_fn<float>(plan.weights_type);
  std::copy_n(bias, kPanel, out);
  for (int64_t o = 0; o < count; ++o) {
    float sum = 0;
    for (int64_t tap = 0; tap < 9; ++tap) {
      const int64_t row = y - w.pads[0] + tap / 3, column = x - w.pads[1] + tap % 3;
      if (row < 0 || row >= w.image[0] || column < 0 || column >= w.image[1]) continue;
      const int64_t pixel = row * w.image[1] + column;
      constexpr int64_t kLine = 64;
      float line[kLine];
      for (int64_t c = 0; c < channels; ++c) {
        if (c % kLine == 0)
          load(line, weights, first + (o * channels + c) * 9 + tap, 9,
               std::min(kLine, channels - c));
        const int64_t at = plan.nchw16c.input ? (c / kPanel * size + pixel) * kPanel + c % kPanel
                                              : c * size + pixel;
        sum += line[c % kLine] * image[at];
      }
    }
    out[o] += sum;
  }
}

// Tiles of a row, of |count| channels of a panel.
struct Tiles {
  static constexpr int64_t kMost = 8;
  const Run* run;
  const Plan* plan;
  const float* bias;
  int64_t image, panel, count;

  // Puts |n| tiles from position (row, column) on to the output; |out| is the position (0, 0).
  void put(const float* sums, int64_t row, int64_t column, int64_t n, float* out) const {
    const Window& w = plan->geometry.window;
    const int64_t width = w.positions[1], at = row * width + column;
    const int64_t rows = std::min(kOut, w.positions[0] - row);
    const int64_t columns = std::min(kOut * n, width - column);
    if (plan->nchw16c.output && rows == kOut && columns == kOut * n)
      return transform(sums, row, column, n, out + at * kPanel, width * kPanel);
    alignas(64) float lines[kOut * kMost * kOut * kPanel];
    constexpr int64_t kPitch = kMost * kOut * kPanel;
    transform(sums, row, column, n, lines, kPitch);
    for (int64_t i = 0; i < rows; ++i) {
      if (plan->nchw16c.output)
        std::copy_n(lines + i * kPitch, columns * kPanel, out + (at + i * width) * kPanel);
      else
        reorder_to_planes(out + at + i * width, w.position_count(), lines + i * kPitch, count,
                          columns);
    }
  }

 private:
  // The same to lines of 16 channels a position; rows of positions are |pitch| apart.
  void transform(const float* sums, int64_t row, int64_t column, int64_t n, float* out,
                 int64_t pitch) const {
    for (int64_t i = 0; i < n; ++i, sums += kPanel, column += kOut, out += kOut * kPanel)
      if (!transform_sums(sums, plan->sums_stride(), plan->columns(panel), bias, out, pitch))
        reference(row, column, out, pitch);
  }
  void reference(int64_t row, int64_t column, float* out, int64_t pitch) const {
    const ConvGeometry& g = plan->geometry;
    const Window& w = g.window;
    const float* const pixels = run->input<float>(0) + image * g.group_in * w.image_size();
    const int64_t first = image % g.groups * g.group_out + panel * kPanel;
    for (int64_t y = 0; y < std::min(kOut, w.positions[0] - row); ++y)
      for (int64_t x = 0; x < std::min(kOut, w.positions[1] - column); ++x)
        reference_position(*plan, pixels, run->input(1), first * g.depth(), count, bias, row + y,
                           column + x, out + y * pitch + x * kPanel);
  }
};

// Puts rows [begin, end) of the band's tiles of a panel to the output and applies the epilogue.
void put_out(const Run& run, const Plan& plan, int64_t image, int64_t panel, int64_t top,
             int64_t begin, int64_t end, const float* sums) {
  const ConvGeometry& g = plan.geometry;
  const int64_t height = g.window.positions[0], width = g.window.positions[1];
  const int64_t positions = height * width, first = panel * kPanel, group = image % g.groups;
  const int64_t count = std::min(kPanel, g.group_out - first);
  float bias[kPanel] = {};
  if (plan.has_bias) std::copy_n(run.input<float>(2) + group * g.group_out + first, count, bias);
  float* const out = run.output<float>(0) + (image * g.group_out + first) * positions;
  const Tiles tiles{&run, &plan, bias, image, panel, count};
  for (int64_t y = begin; y < end; ++y) {
    const float* from = sums + (panel * plan.band_tiles() + y * plan.tiles_x) * kPanel;
    const int64_t row = (top + y) * kOut;
    for (int64_t x = 0, n; x < plan.tiles_x; x += n, from += n * kPanel) {
      n = std::min(plan.nchw16c.output ? 1 : Tiles::kMost, plan.tiles_x - x);
      tiles.put(from, row, x * kOut, n, out);
    }
  }
  const int64_t step = plan.nchw16c.output ? kPanel : 1;
  const int64_t from = (top + begin) * kOut * width;
  const int64_t to = std::min((top + end) * kOut, height) * width;
  for (int64_t c = first; c < first + count; c += step) {
    const int64_t at = (image * g.group_out + c) * positions;
    run.apply_epilogue(at + from * step, at + to * step);
  }
}

void run_band(const Run& run, const Plan& plan, int64_t image, int64_t top) {
  const ConvGeometry& g = plan.geometry;
  uint8_t* const shared = run.shared<uint8_t>();
  float* const lines = reinterpret_cast<float*>(shared);
  float* const pixels = reinterpret_cast<float*>(shared + plan.lines_bytes());
  float* const sums = pixels + kTileElements * plan.pixels_stride();
  const float* const in = run.input<float>(0) + image * g.group_in * g.window.image_size();
  if (!plan.nchw16c.input)
    run.parallel(plan.lines.tasks(),
                 [&](int64_t i, uint32_t) { plan.lines.fill(i, top * kOut, in, lines); });
  const int64_t rows = std::min(plan.band, plan.tiles_y - top);
  run.parallel(plan.chunks * rows, [&](int64_t i, uint32_t) {
    transform_row(plan, top, i % rows, i / rows, plan.nchw16c.input ? in : lines, pixels);
  });
  const int64_t columns = ceil_div(plan.panels, plan.microkernel->panels());
  const float* const weights =
      run.packed<float>() + image % g.groups * plan.panels * kTileElements * plan.weights_stride();
  run.parallel(kTileElements * columns, [&](int64_t i, uint32_t) {
    if (run.stopped()) return;
    const int64_t panel = i % columns * plan.microkernel->panels();
    multiply(plan, i / columns, panel, std::min(plan.microkernel->panels(), plan.panels - panel),
             rows * plan.tiles_x, pixels, weights, sums);
  });
  if (run.stopped()) return;
  const int64_t together = std::clamp<int64_t>(64 / plan.tiles_x, 1, rows);
  const int64_t tasks = ceil_div(rows, together);
  run.parallel(plan.panels * tasks, [&](int64_t i, uint32_t) {
    const int64_t begin = i % tasks * together;
    put_out(run, plan, image, i / tasks, top, begin, std::min(begin + together, rows), sums);
  });
}

Kernel kernel_of(std::shared_ptr<const Plan> made) {
  Kernel kernel;
  kernel.flops = made->geometry.flops();
  kernel.shared_bytes = made->bytes();
  kernel.run = [plan = std::move(made)](const Run& run) -> pfrt_code {
    if (run.packed<float>() == nullptr) return fail_unpacked(run, "conv_winograd");
    const ConvGeometry& geo = plan->geometry;
    for (int64_t image = 0; image < geo.batch * geo.groups; ++image)
      for (int64_t top = 0; top < plan->tiles_y && !run.stopped(); top += plan->band)
        run_band(run, *plan, image, top);
    return run.stop();
  };
  return kernel;
}

std::vector<Alternative> alternatives(const ConvGeometry& geometry, pfrt_dtype weights, bool bias,
                                      Nchw16cSides sides) {
  const Plan plan(geometry, weights, bias, sides);
  std::vector<Alternative> out;
  for (int64_t bytes : {kBandBytes / 2, kBandBytes * 2, kBandBytes * 4}) {
    const auto other = std::make_shared<const Plan>(geometry, weights, bias, sides, bytes);
    std::string change;
    add_change(change, "band", plan.band, other->band);
    const bool known = std::ranges::any_of(out, [&](const auto& a) { return a.change == change; });
    if (!change.empty() && !known) out.push_back({std::move(change), kernel_of(other)});
  }
  return out;
}

// Four numbers in double precision.
PFRT_AVX2_FMA inline __m256d wide(const float* from) { return _mm256_cvtps_pd(_mm_loadu_ps(from)); }

// Three taps along a dimension, transformed to four.
struct Taps {
  __m256d v[kSide];
};

PFRT_AVX2_FMA inline Taps tap_line(__m256d a, __m256d b, __m256d c) {
  const __m256d half = _mm256_set1_pd(0.5);
  return {{a, _mm256_mul_pd(_mm256_add_pd(_mm256_add_pd(a, b), c), half),
           _mm256_mul_pd(_mm256_add_pd(_mm256_sub_pd(a, b), c), half), c}};
}

// Transforms the 3 x 3 weights of one input channel; a tap is a line of output channels. Tile
// element p goes to to[p * stride].
PFRT_AVX2_FMA void transform_weights(const float* taps, float* to, int64_t stride) {
  for (int64_t o = 0; o < kPanel; o += 4) {
    Taps lines[3];
#pragma GCC unroll 3
    for (int64_t y = 0; y < 3; ++y) {
      const float* const from = taps + 3 * y * kPanel + o;
      lines[y] = tap_line(wide(from), wide(from + kPanel), wide(from + 2 * kPanel));
    }
#pragma GCC unroll 4
    for (int64_t x = 0; x < kSide; ++x) {
      const Taps column = tap_line(lines[0].v[x], lines[1].v[x], lines[2].v[x]);
#pragma GCC unroll 4
      for (int64_t y = 0; y < kSide; ++y)
        _mm_storeu_ps(to + (kSide * y + x) * stride + o, _mm256_cvtpd_ps(column.v[y]));
    }
  }
}

// Whether transforms are worth it: an input is transformed once for all outputs, and an output once
// for all inputs.
bool many_channels(int64_t inputs, int64_t outputs) {
  return inputs >= kLeastInputs && outputs >= kLeastOutputs;
}

}  // namespace

std::string refuse_conv_winograd(const KernelRequest& node) {
  if (PanelMicrokernel::get() == nullptr) return "the machine, or PFRT_ISA, has no AVX2";
  if (node.precision() == Precision::kIeee) return "precision ieee takes no transformed numbers";
  const auto weights = node.input_dims(1);
  const auto ones = [&](std::string_view name) {
    return std::ranges::all_of(node.attr_ints(name), [](int64_t v) { return v == 1; });
  };
  if (weights.size() != 4 || weights[2] != 3 || weights[3] != 3 || !ones("strides") ||
      !ones("dilations"))
    return "Winograd tiles are for 3 x 3 taps with strides and dilations of 1";
  if (SnapshotNode::elements(weights) <= 0 || !node.is_constant(1))
    return "tiles are for constant weights";
  const int64_t groups = node.attr_int("group", 1);
  if (groups < 1 || !many_channels(weights[1], weights[0] / groups))
    return message("tiles are for many channels, not ", weights[1], " to ", weights[0]);
  return "";
}

std::optional<PackedInput> pack_conv_winograd(const SnapshotNode& node) {
  const auto dims = node.input_dims(1);
  const int64_t groups = node.attr_int("group", 1), out = dims[0] / groups, channels = dims[1];
  const int64_t panels = ceil_div(out, kPanel),
                stride = ceil_div(channels, kPanel) * kPanel * kPanel;
  PackedInput packed;
  packed.input = 1;
  packed.recipe = message("conv_winograd/", groups, "/", out, "x", channels);
  packed.bytes = static_cast<uint64_t>(groups * panels * kTileElements * stride) * sizeof(float);
  packed.pack = [=](const void* source, void* memory) {
    const float* from = static_cast<const float*>(source);
    float* to = static_cast<float*>(memory);
    constexpr int64_t kBlock = 8;  // channels at a time
    for (int64_t g = 0; g < groups; ++g)
      for (int64_t p = 0; p < panels; ++p, to += kTileElements * stride) {
        const int64_t outs = std::min(kPanel, out - p * kPanel);
        if (channels % kPanel != 0) std::fill_n(to, kTileElements * stride, 0.0f);
        alignas(64) float taps[9 * kBlock * kPanel] = {}, made[kTileElements * kBlock * kPanel];
        for (int64_t c = 0; c < channels; c += kBlock) {
          const int64_t n = std::min(kBlock, channels - c);
          transpose(from + 9 * c, 9 * channels, outs, 9 * n, taps, kPanel);
          for (int64_t i = 0; i < n; ++i)
            transform_weights(taps + 9 * i * kPanel, made + i * kPanel, kBlock * kPanel);
          // Tile elements may share sets of the cache, so lines of one element are copied together.
          for (int64_t q = 0; q < kTileElements; ++q)
            std::copy_n(made + q * kBlock * kPanel, n * kPanel, to + q * stride + c * kPanel);
        }
        from += 9 * channels * outs;
      }
  };
  return packed_from_float32(node, std::move(packed));
}

Result<Kernel> make_conv_winograd_nchw16c(const SnapshotNode& node, Nchw16cSides sides) {
  PFRT_ASSIGN(const ConvGeometry g, one_type_conv_geometry(node));
  Kernel kernel;
  if (g.batch == 0 || g.window.position_count() == 0) {
    kernel.run = [](const Run& run) { return run.stop(); };
    return kernel;
  }
  if (PanelMicrokernel::get() == nullptr)
    return error(Code::kUNSUPPORTED, "AVX2 is not usable any more");
  const bool bias = node.has_input(2);
  const pfrt_dtype dtype = node.input_dtype(1);
  kernel = kernel_of(std::make_shared<const Plan>(g, dtype, bias, sides));
  kernel.alternatives = [g, dtype, bias, sides] { return alternatives(g, dtype, bias, sides); };
  return in_float32(node, {0, 2}, std::move(kernel));
}

Result<Kernel> make_conv_winograd(const KernelRequest& node) {
  return make_conv_winograd_nchw16c(node, {});
}

}  // namespace pfrt::cpu
