// SPDX-License-Identifier: Apache-2.0
//
// Averages of RoiAlign, eight bins at a time. The sums down to a row of bins stay in one or two
// registers where the region is at most 16 pixels across, and permutations bring each bin's pixels
// to its lane; the sums of wider regions are gathered from a line.
#include <immintrin.h>

#include <algorithm>

#include "providers/cpu/isa/target.h"
#include "providers/cpu/kernels/vision/roi_taps.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kLanes = 8;
constexpr int64_t kMostTaps = 16;  // of a bin
enum Kind { kOneRegister, kTwoRegisters, kLine };

PFRT_AVX2_INLINE inline __m256i load_lanes(const int32_t* lanes) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(lanes));
}

PFRT_AVX2_INLINE inline __m256i first_lanes(int64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(std::clamp<int64_t>(n, 0, kLanes))),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

// Eight neighbouring pixels, of which |here| are read, summed over the taps of row |row|.
PFRT_AVX2_FMA_INLINE inline __m256 sum_down(const float* x, const RoiTaps<float>& rows, int64_t row,
                                            int64_t width, __m256i here) {
  __m256 sum = _mm256_setzero_ps();
  for (int64_t k = rows.first[row]; k < rows.first[row + 1]; ++k)
    sum = _mm256_fmadd_ps(_mm256_broadcast_ss(rows.weight + k),
                          _mm256_maskload_ps(x + rows.at[k] * width, here), sum);
  return sum;
}

}  // namespace

// A tap of each of eight neighbouring bins.
struct RoiVectors::Slot {
  float weight[kLanes];
  int32_t from[kLanes];  // pixel, counted from the first
  int32_t here[kLanes];  // 0 where the bin has fewer taps
};

uint64_t RoiVectors::bytes(int64_t columns) {
  return static_cast<uint64_t>(vectors(columns)) * (kMostTaps * sizeof(Slot) + sizeof(int64_t));
}

char* RoiVectors::place(char* memory, int64_t columns) {
  counts_ = reinterpret_cast<int64_t*>(memory);
  slots_ = reinterpret_cast<Slot*>(counts_ + vectors(columns));
  return memory + bytes(columns);
}

bool RoiVectors::arrange(const RoiTaps<float>& columns, int64_t low, int64_t high) {
  low_ = low;
  width_ = high - low;
  if (width_ > 4 * columns.taps) return false;
  for (int64_t first = 0; first < columns.bins; first += kLanes) {
    Slot* const slots = slots_ + first / kLanes * kMostTaps;
    int64_t& count = counts_[first / kLanes] = 0;
    for (int64_t i = first; i < std::min(first + kLanes, columns.bins); ++i) {
      const int64_t taps = columns.first[i + 1] - columns.first[i];
      if (taps > kMostTaps) return false;
      for (; count < taps; ++count) slots[count] = {};
      for (int64_t k = 0; k < taps; ++k) {
        slots[k].weight[i - first] = columns.weight[columns.first[i] + k];
        slots[k].from[i - first] = static_cast<int32_t>(columns.at[columns.first[i] + k] - low);
        slots[k].here[i - first] = -1;
      }
    }
  }
  return true;
}

template <int kind>
PFRT_AVX2_FMA void RoiVectors::average_as(const float* x, const RoiTaps<float>& rows,
                                          const RoiTaps<float>& columns, float* line,
                                          float* y) const {
  const __m256i left = first_lanes(width_), right = first_lanes(width_ - kLanes);
  x += low_;
  float* const end = y + rows.bins * columns.bins;
  for (int64_t row = 0; row < rows.bins; ++row) {
    __m256 a = _mm256_setzero_ps(), b = a;
    if constexpr (kind == kLine) {
      for (int64_t i = 0; i < width_; i += kLanes)
        _mm256_storeu_ps(line + i,
                         sum_down(x + i, rows, row, columns.length, first_lanes(width_ - i)));
    } else {
      a = sum_down(x, rows, row, columns.length, left);
      if constexpr (kind == kTwoRegisters)
        b = sum_down(x + kLanes, rows, row, columns.length, right);
    }
    for (int64_t first = 0; first < columns.bins; first += kLanes) {
      const Slot* slot = slots_ + first / kLanes * kMostTaps;
      __m256 sum = _mm256_setzero_ps();
      for (const Slot* const last = slot + counts_[first / kLanes]; slot < last; ++slot) {
        const __m256i from = load_lanes(slot->from);
        __m256 pixels;
        if constexpr (kind == kLine)
          pixels = _mm256_i32gather_ps(line, from, 4);
        else
          pixels = _mm256_permutevar8x32_ps(a, from);
        if constexpr (kind == kTwoRegisters)
          pixels = _mm256_blendv_ps(pixels, _mm256_permutevar8x32_ps(b, from),
                                    _mm256_castsi256_ps(_mm256_slli_epi32(from, 28)));
        pixels = _mm256_and_ps(pixels, _mm256_castsi256_ps(load_lanes(slot->here)));
        sum = _mm256_fmadd_ps(_mm256_loadu_ps(slot->weight), pixels, sum);
      }
      // Lanes beyond the row are overwritten by the next one, which comes later.
      const int64_t n = std::min(kLanes, columns.bins - first);
      if (end - y >= kLanes)
        _mm256_storeu_ps(y, sum);
      else
        _mm256_maskstore_ps(y, first_lanes(n), sum);
      y += n;
    }
  }
}

void RoiVectors::average(const float* x, const RoiTaps<float>& rows, const RoiTaps<float>& columns,
                         float* line, float* y) const {
  if (width_ <= kLanes)
    average_as<kOneRegister>(x, rows, columns, line, y);
  else if (width_ <= 2 * kLanes)
    average_as<kTwoRegisters>(x, rows, columns, line, y);
  else
    average_as<kLine>(x, rows, columns, line, y);
}

}  // namespace pfrt::cpu
