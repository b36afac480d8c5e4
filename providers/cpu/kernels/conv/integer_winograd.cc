// SPDX-License-Identifier: Apache-2.0
//
// Convolutions of bytes by 3 x 3 taps by Winograd's F(2 x 2, 3 x 3) in integers. The transform of
// the weights is doubled along both dimensions, which makes all its factors whole; four times the
// sum comes out, exactly. Transformed pixels are within +-1020 and weights within +-2295; a quarter
// of the sum of int32 is exact up to 2^29, which 917 channels cannot exceed.
#include <immintrin.h>

#include <algorithm>
#include <memory>

#include "providers/cpu/isa/target.h"
#include "providers/cpu/jit/panel_microkernel.h"
#include "providers/cpu/kernels/conv/image_band.h"
#include "providers/cpu/kernels/conv/int16_dot.h"
#include "providers/cpu/kernels/matmul/int16_dot.h"
#include "providers/cpu/row/ceil_div.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kPanel = PanelMicrokernel::kPanel;
constexpr int64_t kSide = 4, kOut = 2, kTileElements = kSide * kSide;  // of a tile
constexpr int64_t kPass = 256;  // pairs of k of a call of the microkernel
constexpr int64_t kBandBytes = 1 << 20, kLeastTiles = 56;
constexpr int64_t kLeastChannels = 32, kMostChannels = 896, kLeastOutputs = 32;
static_assert(9 * 255 * 255 * kMostChannels < 1 << 29);

struct Plan {
  Int16DotConv conv;
  ConvGeometry geometry;  // of pairs
  const PanelMicrokernel* microkernel;
  int64_t chunks, panels;  // of 16 pairs of input channels, of 16 output channels of a group
  int64_t tiles_y, tiles_x;
  int64_t band;  // rows of tiles
  ImageBand lines;
  std::vector<int64_t> offsets;

  explicit Plan(const Int16DotConv& c)
      : conv(c),
        geometry(c.as_int16_dot()),
        microkernel(PanelMicrokernel::get_int16_dot()),
        chunks(ceil_div(geometry.group_in, kPanel)),
        panels(ceil_div(geometry.group_out, kPanel)),
        tiles_y(ceil_div(geometry.window.positions[0], kOut)),
        tiles_x(ceil_div(geometry.window.positions[1], kOut)),
        band(band_rows()),
        lines(whole_tiles(geometry.window), {geometry.group_in, 3, 3, false, kPanel}, kOut * band,
              false) {
    for (int64_t c16 = 0; c16 < chunks; ++c16) offsets.push_back(c16 * band_tiles() * kPanel);
  }

  int64_t band_tiles() const { return band * tiles_x; }
  // From a tile element to the next: transformed pixels, sums, weights of a panel.
  int64_t pixels_stride() const { return chunks * band_tiles() * kPanel; }
  int64_t sums_stride() const { return panels * band_tiles() * kPanel; }
  int64_t weights_stride() const { return chunks * kPanel * kPanel; }
  // Where things lie in the memory of the step, in elements of 32 bits.
  int64_t pixels_at() const { return static_cast<int64_t>((lines.bytes() + 63) / 64 * 16); }
  int64_t sums_at() const { return pixels_at() + kTileElements * pixels_stride(); }
  int64_t planes_at() const { return sums_at() + kTileElements * sums_stride(); }
  uint64_t shared_bytes() const {
    return static_cast<uint64_t>(planes_at()) * 4 + conv.plane_bytes();
  }
  // Lines of the two rows of positions of a row of tiles.
  int64_t scratch_elements() const { return kOut * kOut * tiles_x * kPanel; }

 private:
  int64_t band_rows() const {
    const int64_t tile_bytes = kTileElements * (chunks + panels) * kPanel * 4;
    const int64_t tiles = std::max(kBandBytes / tile_bytes, kLeastTiles);
    return ceil_div(tiles_y, ceil_div(tiles_y, std::max<int64_t>(1, tiles / tiles_x)));
  }
  Window whole_tiles(Window w) const {
    w.positions = {tiles_y * kOut, tiles_x * kOut};
    return w;
  }
};

struct Four {
  __m256i v[4];
};

PFRT_AVX2 __m256i load(const float* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
PFRT_AVX2 void store(float* to, __m256i x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), x);
}

// The transform of four rows, or columns, of pairs.
PFRT_AVX2 inline Four input_line(__m256i a, __m256i b, __m256i c, __m256i d) {
  return {{_mm256_sub_epi16(a, c), _mm256_add_epi16(b, c), _mm256_sub_epi16(c, b),
           _mm256_sub_epi16(b, d)}};
}

// 4 x 4 pixels of 16 pairs, |row| apart, to the 16 elements of a tile, |stride| apart.
PFRT_AVX2 void transform_pixels(const float* in, int64_t row, float* out, int64_t stride) {
  for (int64_t half = 0; half < kPanel; half += 8) {
    Four columns[4];
#pragma GCC unroll 4
    for (int64_t x = 0; x < 4; ++x) {
      const float* const at = in + kPanel * x + half;
      columns[x] = input_line(load(at), load(at + row), load(at + 2 * row), load(at + 3 * row));
    }
#pragma GCC unroll 4
    for (int64_t y = 0; y < 4; ++y) {
      const Four line =
          input_line(columns[0].v[y], columns[1].v[y], columns[2].v[y], columns[3].v[y]);
#pragma GCC unroll 4
      for (int64_t x = 0; x < 4; ++x) store(out + (4 * y + x) * stride + half, line.v[x]);
    }
  }
}

// The 16 elements of a tile of sums to 2 x 2 positions of 16 channels, |row| apart.
PFRT_AVX2 void transform_sums(const float* in, int64_t stride, float* out, int64_t row) {
  for (int64_t half = 0; half < kPanel; half += 8) {
    __m256i upper[4], lower[4];
#pragma GCC unroll 4
    for (int64_t x = 0; x < 4; ++x) {
      const float* const at = in + x * stride + half;
      const __m256i a = load(at), b = load(at + 4 * stride), c = load(at + 8 * stride),
                    d = load(at + 12 * stride);
      upper[x] = _mm256_add_epi32(a, _mm256_add_epi32(b, c));
      lower[x] = _mm256_sub_epi32(_mm256_sub_epi32(b, c), d);
    }
#pragma GCC unroll 2
    for (int64_t y = 0; y < 2; ++y) {
      const __m256i* const line = y == 0 ? upper : lower;
      const __m256i left = _mm256_add_epi32(line[0], _mm256_add_epi32(line[1], line[2]));
      const __m256i right = _mm256_sub_epi32(_mm256_sub_epi32(line[1], line[2]), line[3]);
      store(out + y * row + half, _mm256_srai_epi32(left, 2));
      store(out + y * row + kPanel + half, _mm256_srai_epi32(right, 2));
    }
  }
}

void multiply(const Plan& plan, int64_t element, int64_t panel, int64_t count, int64_t tiles,
              const float* pixels, const float* weights, float* sums) {
  static constexpr float kNothing[PanelMicrokernel::kMostPanels * kPanel] = {};
  PanelMicrokernel::Blocks p{};
  p.a_row = p.c_row = kPanel;
  p.depth = kPanel;
  p.b_panel = kTileElements * plan.weights_stride();
  p.c_panel = plan.band_tiles() * kPanel;
  const PanelMicrokernel::RowBlocks row_blocks = plan.microkernel->row_blocks(tiles);
  constexpr int64_t kMost = kPass / kPanel;
  for (int64_t chunk = 0; chunk < plan.chunks; chunk += kMost) {
    p.chunks = p.chain = std::min(kMost, plan.chunks - chunk);
    p.offsets = plan.offsets.data() + chunk;
    p.a = pixels + element * plan.pixels_stride();
    p.b = weights + (panel * kTileElements + element) * plan.weights_stride() +
          chunk * kPanel * kPanel;
    p.c = sums + element * plan.sums_stride() + panel * p.c_panel;
    p.start = chunk == 0 ? kNothing : nullptr;
    plan.microkernel->run(row_blocks, count, p);
  }
}

// Puts row |y| of the band's tiles of a panel to the output.
void put_out(const Run& run, const Plan& plan, int64_t image, int64_t panel, int64_t top, int64_t y,
             const float* sums, float* scratch, const PutSums::Fn& put) {
  const ConvGeometry& g = plan.geometry;
  const int64_t height = g.window.positions[0], width = g.window.positions[1];
  const int64_t pitch = kOut * plan.tiles_x * kPanel, first = panel * kPanel;
  const float* const from = sums + (panel * plan.band_tiles() + y * plan.tiles_x) * kPanel;
  for (int64_t x = 0; x < plan.tiles_x; ++x)
    transform_sums(from + x * kPanel, plan.sums_stride(), scratch + kOut * x * kPanel, pitch);
  const int64_t row = (top + y) * kOut;
  for (int64_t i = 0; i < std::min(kOut, height - row); ++i)
    put(run, {image * g.group_out + first, std::min(kPanel, g.group_out - first), (row + i) * width,
              width, scratch + i * pitch, scratch + plan.scratch_elements()});
}

void run_band(const Run& run, const Plan& plan, int64_t image, int64_t top,
              const PutSums::Fn& put) {
  float* const lines = run.shared<float>();
  float *const pixels = lines + plan.pixels_at(), *const sums = lines + plan.sums_at();
  run.parallel(plan.lines.tasks(), [&](int64_t i, uint32_t) {
    plan.lines.fill(i, top * kOut, lines + plan.planes_at(), lines);
  });
  const int64_t rows = std::min(plan.band, plan.tiles_y - top), pitch = plan.lines.row_step();
  run.parallel(plan.chunks * rows, [&](int64_t i, uint32_t) {
    const int64_t y = i % rows, chunk = i / rows;
    const float* from =
        lines + plan.lines.offsets()[static_cast<size_t>(9 * chunk)] + kOut * y * pitch;
    float* to = pixels + (chunk * plan.band_tiles() + y * plan.tiles_x) * kPanel;
    for (int64_t x = 0; x < plan.tiles_x; ++x, from += kOut * kPanel, to += kPanel)
      transform_pixels(from, pitch, to, plan.pixels_stride());
  });
  const int64_t columns = ceil_div(plan.panels, plan.microkernel->panels());
  const float* const weights = run.packed<float>() + image % plan.geometry.groups * plan.panels *
                                                         kTileElements * plan.weights_stride();
  run.parallel(kTileElements * columns, [&](int64_t i, uint32_t) {
    if (run.stopped()) return;
    const int64_t panel = i % columns * plan.microkernel->panels();
    multiply(plan, i / columns, panel, std::min(plan.microkernel->panels(), plan.panels - panel),
             rows * plan.tiles_x, pixels, weights, sums);
  });
  if (run.stopped()) return;
  run.parallel(plan.panels * rows, [&](int64_t i, uint32_t worker) {
    put_out(run, plan, image, i / rows, top, i % rows, sums, run.scratch<float>(worker), put);
  });
}

// Three weights, |step| apart, times 2 G, where G is the matrix of the transform.
void transform(const int32_t* in, int64_t step, int32_t* out, int64_t out_step) {
  const int32_t a = in[0], b = in[step], c = in[2 * step];
  out[0] = 2 * a;
  out[out_step] = a + b + c;
  out[2 * out_step] = a - b + c;
  out[3 * out_step] = 2 * c;
}

// Nine weights to the 16 elements of a tile.
void transform_weights(const int32_t* taps, int32_t* elements) {
  int32_t rows[3 * kSide];
  for (int64_t y = 0; y < 3; ++y) transform(taps + 3 * y, 1, rows + kSide * y, 1);
  for (int64_t x = 0; x < kSide; ++x) transform(rows + x, kSide, elements + x, kSide);
}

}  // namespace

bool int16_dot_winograd_takes(const SnapshotNode& node, const IntegerInputs& in) {
  const auto weights = node.input_dims(in.w);
  const auto ones = [&](std::string_view name) {
    return std::ranges::all_of(node.attr_ints(name), [](int64_t v) { return v == 1; });
  };
  return weights.size() == 4 && weights[2] == 3 && weights[3] == 3 && ones("strides") &&
         ones("dilations") && weights[1] >= kLeastChannels && weights[1] <= kMostChannels &&
         weights[0] / std::max<int64_t>(node.attr_int("group", 1), 1) >= kLeastOutputs;
}

PackedInput pack_int16_dot_winograd(int64_t groups, int64_t outs, int64_t pairs) {
  const int64_t panels = ceil_div(outs, kPanel), stride = ceil_div(pairs, kPanel) * kPanel * kPanel;
  PackedInput packed;
  packed.recipe = message("int16_dot_winograd/", groups, "/", outs, "x", pairs);
  packed.bytes = static_cast<uint64_t>(groups * panels * kTileElements * stride) * sizeof(uint32_t);
  packed.pack = [=](const void* source, void* memory) {
    const auto* from = static_cast<const uint32_t*>(source);
    auto* const to = static_cast<uint32_t*>(memory);
    std::fill_n(to, groups * panels * kTileElements * stride, 0);
    for (int64_t g = 0; g < groups; ++g)
      for (int64_t o = 0; o < outs; ++o)
        for (int64_t p = 0; p < pairs; ++p, from += 9) {
          int32_t taps[2][9], elements[2][kTileElements];
          for (int64_t t = 0; t < 9; ++t) {
            taps[0][t] = static_cast<int16_t>(from[t] & 0xffff);
            taps[1][t] = static_cast<int16_t>(from[t] >> 16);
          }
          for (const int64_t half : {0, 1}) transform_weights(taps[half], elements[half]);
          uint32_t* const column =
              to + (g * panels + o / kPanel) * kTileElements * stride + p * kPanel + o % kPanel;
          for (int64_t i = 0; i < kTileElements; ++i)
            column[i * stride] = (static_cast<uint32_t>(elements[0][i]) & 0xffff) |
                                 static_cast<uint32_t>(elements[1][i]) << 16;
        }
  };
  return packed;
}

Kernel int16_dot_winograd_kernel(const Int16DotConv& conv, PutSums put) {
  const auto plan = std::make_shared<const Plan>(conv);
  Kernel kernel;
  kernel.shared_bytes = plan->shared_bytes();
  kernel.scratch_bytes = static_cast<uint64_t>(plan->scratch_elements()) * sizeof(float) +
                         static_cast<uint64_t>(plan->geometry.window.positions[1]) * put.bytes;
  kernel.run = [plan, put = std::move(put)](const Run& run) -> pfrt_code {
    if (run.packed<float>() == nullptr) return fail_unpacked(run, "integer convolution");
    const ConvGeometry& g = plan->geometry;
    const PutSums::Fn put_sums = put.of_run(run);
    const int32_t zero = plan->conv.read_x_zero(run);
    for (int64_t image = 0; image < g.batch * g.groups && !run.stopped(); ++image) {
      plan->conv.widen(run, image, zero, run.shared<uint32_t>() + plan->planes_at());
      for (int64_t top = 0; top < plan->tiles_y && !run.stopped(); top += plan->band)
        run_band(run, *plan, image, top, put_sums);
    }
    return run.stop();
  };
  return kernel;
}

}  // namespace pfrt::cpu
