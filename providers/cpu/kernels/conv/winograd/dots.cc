// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/conv/winograd/dots.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "providers/cpu/elements/ceil_div.h"
#include "providers/cpu/isa/target.h"
#include "providers/cpu/kernels/conv/winograd/transforms.h"
#include "providers/cpu/kernels/matmul/int16_dot.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kPanel = WinogradDotTaps::kPanel, kElements = WinogradDotTaps::kElements;
constexpr int64_t kStep = DotMicrokernel::kStepBytes, kSide = ThreeTaps::kSide;
constexpr int64_t kBlock = 16;             // channels transformed together
constexpr int64_t kBandBytes = 448 << 10;  // of elements, which stay in the second-level cache
constexpr int64_t kBandTiles = 128;        // their sums stay there too
constexpr int64_t kLeastRowBlocks = 4;     // fewer have no time to fetch the next columns
constexpr int64_t kWhole[] = {0};          // offsets of a row that is one piece

using Sums = uint32_t __attribute__((vector_size(32)));  // sums may wrap around

// The geometry of whole tiles.
ConvGeometry in_tiles(ConvGeometry g) {
  for (size_t i = 0; i < 2; ++i) {
    g.window.end_pads[i] += g.window.positions[i] % 2;
    g.window.positions[i] += g.window.positions[i] % 2;
  }
  return g;
}

DotWeights as_weights(const ConvGeometry& g, const WinogradDotTaps& taps) {
  DotWeights w{};
  w.groups = g.groups;
  w.outs = g.group_out;
  w.channels = g.group_in;
  w.taps_y = w.taps_x = 3;
  w.dilation_x = 1;
  w.microkernel = taps.microkernel;
  return w;
}

int64_t rows_of_band(const ConvGeometry& g, int64_t tiles_y, int64_t tiles_x) {
  const int64_t bytes = kElements * ceil_div(g.group_in, kBlock) * kBlock * 2;
  const int64_t tiles = std::min(kBandBytes / bytes, kBandTiles);
  const int64_t most = std::max<int64_t>(tiles / std::max<int64_t>(tiles_x, 1), 1);
  return tiles_y > 0 ? ceil_div(tiles_y, ceil_div(tiles_y, most)) : 1;
}

PFRT_AVX2_INLINE inline __m256i load(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}

// The elements of 16 channels of a tile, each |stride| bytes from the next. Adds up their own
// products in the even lanes of |own|.
PFRT_AVX2 void transform_block(const uint8_t* pixels, int64_t row, int64_t pixel, char* out,
                               int64_t stride, __m256i* own) {
  __m256i lines[kSide][kSide];
  for (int64_t y = 0; y < kSide; ++y) {
    const uint8_t* const at = pixels + y * row;
    const __m256i d0 = load(at), d1 = load(at + pixel), d2 = load(at + 2 * pixel),
                  d3 = load(at + 3 * pixel);
    lines[y][0] = _mm256_sub_epi16(d0, d2);
    lines[y][1] = _mm256_add_epi16(d1, d2);
    lines[y][2] = _mm256_sub_epi16(d2, d1);
    lines[y][3] = _mm256_sub_epi16(d1, d3);
  }
  const auto put = [&](int64_t i, __m256i x) PFRT_AVX2_INLINE {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i * stride), x);
    const __m256i other = _mm256_shuffle_epi32(x, _MM_SHUFFLE(2, 3, 0, 1));
    own[i] = _mm256_add_epi32(own[i], _mm256_madd_epi16(x, other));
  };
  for (int64_t x = 0; x < kSide; ++x) {
    put(x, _mm256_sub_epi16(lines[0][x], lines[2][x]));
    put(kSide + x, _mm256_add_epi16(lines[1][x], lines[2][x]));
    put(2 * kSide + x, _mm256_sub_epi16(lines[2][x], lines[1][x]));
    put(3 * kSide + x, _mm256_sub_epi16(lines[1][x], lines[3][x]));
  }
}

PFRT_AVX2 uint32_t even_lanes(__m256i x) {
  const __m128i half = _mm_add_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(half)) +
         static_cast<uint32_t>(_mm_extract_epi32(half, 2));
}

PFRT_AVX2 void transform_tile(const uint8_t* pixels, const DotConvPlan& image, char* out,
                              int64_t stride, int32_t* starts, int64_t tiles) {
  __m256i own[kElements];
  for (__m256i& sum : own) sum = _mm256_setzero_si256();
  for (int64_t block = 0; block < image.blocks; ++block, pixels += image.block_bytes())
    for (int64_t c = 0; c < image.line; c += kBlock, out += kBlock * 2)
      transform_block(pixels + c * 2, image.row_bytes, image.step_bytes, out, stride, own);
  for (int64_t i = 0; i < kElements; ++i)
    starts[i * tiles] = static_cast<int32_t>(0 - even_lanes(own[i]));
}

PFRT_AVX2 void transform_taps_of_channel(const int32_t (&taps)[3][3],
                                         int32_t (&elements)[kElements]) {
  transform_taps<ThreeTaps>(taps, elements);
}

PFRT_AVX2 void transform_sums_of_tile(const int32_t* in, int64_t stride, const int32_t* start,
                                      int32_t* out, int64_t row) {
  for (int64_t half = 0; half < kPanel; half += 8) {
    Sums sums[2][2];
    pfrt::cpu::transform_sums<ThreeTaps>(reinterpret_cast<const float*>(in + half), stride, sums);
    const __m256i begin = load(start + half);
    for (int64_t y = 0; y < 2; ++y)
      for (int64_t x = 0; x < 2; ++x)
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + y * row + x * kPanel + half),
                            _mm256_add_epi32(begin, _mm256_srai_epi32(__m256i(sums[y][x]), 2)));
  }
}

}  // namespace

int64_t WinogradDotTaps::panels() const { return ceil_div(outs, kPanel); }

uint64_t WinogradDotTaps::bytes() const {
  const int64_t starts = (kElements + 1) * kPanel * static_cast<int64_t>(sizeof(int32_t));
  return static_cast<uint64_t>(groups * panels() * (panel_bytes() + starts));
}

const char* WinogradDotTaps::panel(const void* packed, int64_t group, int64_t p) const {
  return static_cast<const char*>(packed) + (group * panels() + p) * panel_bytes();
}

const int32_t* WinogradDotTaps::starts(const void* packed, int64_t group, int64_t p) const {
  return reinterpret_cast<const int32_t*>(panel(packed, groups, 0)) +
         (group * panels() + p) * kElements * kPanel;
}

const int32_t* WinogradDotTaps::sums(const void* packed, int64_t group) const {
  return starts(packed, groups, 0) + group * panels() * kPanel;
}

PackedInput WinogradDotTaps::packed(uint32_t input) const {
  PackedInput p;
  p.input = input;
  p.recipe =
      message("winograd_dots/", is_signed ? "int8/" : "uint8/", groups, "/", outs, "x", channels);
  for (const int32_t zero : zeros) p.recipe += message("/", zero);
  p.bytes = bytes();
  p.pack = [taps = *this](const void* source, void* out) {
    taps.pack(static_cast<const uint8_t*>(source), static_cast<char*>(out));
  };
  return p;
}

void WinogradDotTaps::pack(const uint8_t* source, char* out) const {
  std::memset(out, 0, bytes());
  auto* const all_starts = const_cast<int32_t*>(starts(out, 0, 0));
  auto* const all_sums = const_cast<int32_t*>(sums(out, 0));
  std::vector<uint32_t> pairs(static_cast<size_t>(steps()));
  for (int64_t i = 0; i < groups * outs; ++i) {
    const int64_t panel_of_all = i / outs * panels() + i % outs / kPanel, lane = i % outs % kPanel;
    const int32_t zero = zeros[static_cast<size_t>(i) % zeros.size()];
    char* const to = out + panel_of_all * panel_bytes() + lane * kStep;
    for (int64_t c = 0; c < channels; ++c) {
      int32_t own[3][3], elements[kElements];
      for (int64_t t = 0; t < 9; ++t) {
        const uint8_t byte = source[(i * channels + c) * 9 + t];
        own[t / 3][t % 3] = (is_signed ? int32_t{static_cast<int8_t>(byte)} : int32_t{byte}) - zero;
        all_sums[panel_of_all * kPanel + lane] += own[t / 3][t % 3];
      }
      transform_taps_of_channel(own, elements);
      for (int64_t e = 0; e < kElements; ++e) {
        const auto wide = static_cast<int16_t>(elements[e]);
        std::memcpy(
            to + e * element_bytes() + microkernel->line(c / 2) * kPanel * kStep + c % 2 * 2, &wide,
            sizeof wide);
      }
    }
    for (int64_t e = 0; e < kElements; ++e) {
      const char* const column = to + e * element_bytes();
      for (size_t s = 0; s < pairs.size(); ++s)
        std::memcpy(&pairs[s], column + static_cast<int64_t>(s) * kPanel * kStep, kStep);
      all_starts[(panel_of_all * kElements + e) * kPanel + lane] =
          static_cast<int32_t>(0 - own_products(pairs.data(), kWhole, steps()));
    }
  }
}

WinogradDotPlan::WinogradDotPlan(const ConvGeometry& g, const WinogradDotTaps& t, pfrt_dtype x,
                                 bool nchw16c)
    : geometry(g),
      taps(t),
      tiles_y(ceil_div(g.window.positions[0], int64_t{2})),
      tiles_x(ceil_div(g.window.positions[1], int64_t{2})),
      band(rows_of_band(g, tiles_y, tiles_x)),
      image(in_tiles(g), as_weights(g, t), x, {nchw16c, false}, 2 * band) {}

int64_t WinogradDotPlan::tile_bytes() const {
  return image.blocks * ceil_div(image.line, kBlock) * kBlock * 2;
}

int64_t WinogradDotPlan::task_panels() const {
  return std::min(taps.panels(),
                  taps.microkernel->panels(taps.microkernel->row_blocks(band_tiles()).first()));
}

uint64_t WinogradDotPlan::element_bytes() const {
  return static_cast<uint64_t>(kElements * band_tiles() * tile_bytes());
}

uint64_t WinogradDotPlan::shared_bytes() const {
  return pixel_bytes() + element_bytes() +
         static_cast<uint64_t>(kElements * band_tiles()) * sizeof(int32_t);
}

void WinogradDotPlan::transform_pixels(const uint8_t* pixels, int64_t begin, int64_t end,
                                       char* elements, int32_t* starts) const {
  const int64_t stride = band_tiles() * tile_bytes();
  for (int64_t t = begin; t < end; ++t)
    transform_tile(pixels + t / tiles_x * 2 * image.row_bytes + t % tiles_x * 2 * image.step_bytes,
                   image, elements + t * tile_bytes(), stride, starts + t, band_tiles());
}

void WinogradDotPlan::multiply(const char* elements, const int32_t* starts, const void* packed,
                               int64_t group, int64_t panel, int64_t panels, int64_t begin,
                               int64_t end, int32_t* sums) const {
  const DotMicrokernel& microkernel = *taps.microkernel;
  const DotMicrokernel::RowBlocks row_blocks = microkernel.row_blocks(end - begin);
  const int64_t most = microkernel.panels(row_blocks.first());
  for (int64_t q = 0; q < panels; q += most)
    for (int64_t e = 0; e < kElements; ++e) {
      DotMicrokernel::Blocks p{};
      p.a = elements + (e * band_tiles() + begin) * tile_bytes();
      p.offsets = kWhole;
      p.a_row = tile_bytes();
      p.chunks = 1;
      p.depth = taps.steps();
      p.b = taps.panel(packed, group, panel + q) + e * taps.element_bytes();
      p.b_panel = taps.panel_bytes();
      p.c = sums + q * sums_of_panel() + (e * band_tiles() + begin) * kPanel;
      p.c_row = kPanel;
      p.c_panel = sums_of_panel();
      p.start = taps.starts(packed, group, panel + q) + e * kPanel;
      p.start_panel = kElements * kPanel;
      p.row_start = starts + e * band_tiles() + begin;
      p.next = static_cast<const char*>(p.b) + taps.element_bytes();
      if (row_blocks.count >= kLeastRowBlocks) p.next_lines = ceil_div(p.depth, row_blocks.count);
      microkernel.run(row_blocks, std::min(most, panels - q), false, p);
    }
}

void WinogradDotPlan::transform_sums(const int32_t* sums, int64_t y, const int32_t* start,
                                     int32_t* lines) const {
  const int64_t stride = band_tiles() * kPanel;
  for (int64_t x = 0; x < tiles_x; ++x)
    transform_sums_of_tile(sums + (y * tiles_x + x) * kPanel, stride, start, lines + 2 * x * kPanel,
                           2 * tiles_x * kPanel);
}

}  // namespace pfrt::cpu
