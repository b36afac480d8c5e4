// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/matmul/nbits/rows.h"

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "providers/cpu/isa/target.h"

namespace pfrt::cpu {
namespace {

using Rows = NBitsMicrokernel::Rows;
constexpr int64_t kMostBlock = 256, kLanes = 8, kQuad = 4;

struct Block {
  alignas(32) int8_t quads[kMostBlock];
  float scale;
  int32_t sum;
};

// Rounds |n| elements of |x|, a multiple of 16, with a scale of their own.
PFRT_AVX2_FMA void round_block(const float* x, int64_t n, Block& to) {
  // Compared as integers, magnitudes have the order of floats, and numbers that are not finite come
  // last.
  const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
  __m256i most = _mm256_setzero_si256();
  for (int64_t i = 0; i < n; i += kLanes) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i));
    most = _mm256_max_epi32(most, _mm256_and_si256(bits, magnitude));
  }
  alignas(32) uint32_t lanes[kLanes];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), most);
  const float largest = std::bit_cast<float>(*std::max_element(lanes, lanes + kLanes));
  // Smaller ones have no reciprocal.
  constexpr float kLeast = 1e-36f, kMost = 127;
  to.sum = 0;
  to.scale = 0;
  if (!(largest >= kLeast) || !(largest <= std::numeric_limits<float>::max())) {
    if (!(largest < kLeast)) to.scale = std::numeric_limits<float>::quiet_NaN();
    std::memset(to.quads, 0, static_cast<size_t>(n));
    return;
  }
  to.scale = largest / kMost;
  const __m256 factor = _mm256_set1_ps(kMost / largest);
  __m256i sums = _mm256_setzero_si256();
  for (int64_t i = 0; i < n; i += 2 * kLanes) {
    const __m256i low = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + i), factor));
    const __m256i high = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + i + kLanes), factor));
    sums = _mm256_add_epi32(sums, _mm256_add_epi32(low, high));
    const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(low, high), 0xd8);
    const __m128i bytes =
        _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_store_si128(reinterpret_cast<__m128i*>(to.quads + i), bytes);
  }
  alignas(32) int32_t parts[kLanes];
  _mm256_store_si256(reinterpret_cast<__m256i*>(parts), sums);
  for (const int32_t part : parts) to.sum += part;
}

// Added to sums of bytes, for the zero points: see NBitsMicrokernel::Blocks.
int32_t correction(const NBitsPanel& panel, int32_t sum) {
  return panel.zeros == NBitsPanel::Zeros::kMiddle ? -sum * (1 << (panel.bits - 1)) : -sum & 0xffff;
}

void put_bytes(const NBitsPanel& panel, const float* x, int64_t r, int64_t rows, uint8_t* out) {
  Block block;
  round_block(x, panel.block, block);
  const int32_t take_off = correction(panel, block.sum);
  std::memcpy(out + r * 4, &block.scale, sizeof block.scale);
  std::memcpy(out + (rows + r) * 4, &take_off, sizeof take_off);
  uint8_t* const quads = out + 8 * rows + r * kQuad;
  for (int64_t q = 0; q < panel.block / kQuad; ++q)
    std::memcpy(quads + q * rows * kQuad, block.quads + q * kQuad, kQuad);
}

void put_floats(const NBitsPanel& panel, const float* x, int64_t r, int64_t rows, float* out) {
  if (rows == 1) {
    std::copy_n(x, panel.block, out);
    return;
  }
  for (int64_t k = 0; k < panel.block; ++k) out[k * rows + r] = x[k];
}

bool all_finite(const float* x, int64_t n) {
  return std::all_of(x, x + n, [](float v) { return std::isfinite(v); });
}

// A column of a packed panel, and the parts that its weights are made of.
class PackedColumn {
 public:
  PackedColumn(const NBitsPanel& panel, const uint8_t* data, int64_t column)
      : panel_(panel), data_(data), column_(column) {}

  float scale(int64_t block) const {
    return number(data_ + block * panel_.block_bytes() + panel_.lines() * NBitsPanel::kLine);
  }
  float zero(int64_t block) const {
    const uint8_t* const zeros = data_ + panel_.zeros_at() + block * panel_.zero_bytes();
    if (panel_.zeros == NBitsPanel::Zeros::kMiddle)
      return static_cast<float>(1u << (panel_.bits - 1));
    return panel_.zeros == NBitsPanel::Zeros::kUint8 ? static_cast<float>(zeros[column_])
                                                     : number(zeros);
  }
  float weight(int64_t place) const {
    const int64_t block = place / panel_.block, within = place % panel_.block,
                  neighbour = within % panel_.fields();
    uint32_t line;
    std::memcpy(&line,
                data_ + block * panel_.block_bytes() +
                    within / panel_.fields() * NBitsPanel::kLine + column_ * 4,
                sizeof line);
    const int64_t field = neighbour % kQuad * (8 / panel_.bits) + neighbour / kQuad;
    const uint32_t value = line >> (field * panel_.bits) & ((1u << panel_.bits) - 1);
    return (static_cast<float>(value) - zero(block)) * scale(block);
  }
  bool finite() const {
    for (int64_t b = 0; b < panel_.blocks; ++b)
      if (!std::isfinite(scale(b)) || !std::isfinite(zero(b))) return false;
    return true;
  }

 private:
  float number(const uint8_t* of_columns) const {
    float out;
    std::memcpy(&out, of_columns + column_ * 4, sizeof out);
    return out;
  }
  const NBitsPanel& panel_;
  const uint8_t* data_;
  int64_t column_;
};

}  // namespace

void mend_nbits_results(const NBitsWeights& w, const uint8_t* panel, const float* row,
                        const float* bias, int64_t count, float* y) {
  if (all_finite(y, count)) return;
  const bool rounded = w.rows() == Rows::kInt8 && !all_finite(row, w.form.k);
  for (int64_t j = 0; j < count; ++j) {
    const PackedColumn column(w.panel, panel, j);
    if (std::isfinite(y[j]) || (!rounded && column.finite())) continue;
    float sum = 0;
    const int64_t places = w.order.empty() ? w.form.k : w.places();
    for (int64_t i = 0; i < places; ++i) {
      const int64_t k = w.order.empty() ? i : w.order[static_cast<size_t>(i)];
      if (k >= 0) sum += row[k] * column.weight(i);
    }
    y[j] = sum + bias[j];
  }
}

void pack_nbits_row(const NBitsWeights& w, const float* row, int64_t r, int64_t rows, uint8_t* out,
                    float* spare) {
  int64_t k = w.form.k;
  if (!w.order.empty()) {
    k = w.places();
    for (int64_t i = 0; i < k; ++i) {
      const int32_t from = w.order[static_cast<size_t>(i)];
      spare[i] = from < 0 ? 0 : row[from];
    }
    row = spare;
  }
  const NBitsPanel& panel = w.panel;
  const Rows kind = w.rows();
  const int64_t step = rows * NBitsMicrokernel::row_bytes(kind, panel.block);
  for (int64_t b = 0; b < panel.blocks; ++b, out += step) {
    float last[kMostBlock];
    const float* x = row + b * panel.block;
    const int64_t have = std::min(panel.block, k - b * panel.block);
    if (have < panel.block) {
      std::fill(std::copy_n(x, have, last), last + panel.block, 0.0f);
      x = last;
    }
    if (kind == Rows::kInt8)
      put_bytes(panel, x, r, rows, out);
    else
      put_floats(panel, x, r, rows, reinterpret_cast<float*>(out));
  }
}

}  // namespace pfrt::cpu
