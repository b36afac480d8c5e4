// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/matmul/dot_columns.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "core/base/status.h"
#include "providers/cpu/isa/target.h"
#include "providers/cpu/kernels/matmul/int16_dot.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kWhole[] = {0};  // offsets of a row that is one piece
constexpr int64_t kPanel = DotMicrokernel::kPanel, kStep = DotMicrokernel::kStepBytes;

__m128i load(const void* from) { return _mm_loadu_si128(static_cast<const __m128i*>(from)); }
void store(char* to, __m128i x) { _mm_storeu_si128(reinterpret_cast<__m128i*>(to), x); }

// Four rows of 16 bytes to 16 columns of four bytes, |flip| changing their highest bits.
void interleave(const uint8_t* const rows[4], __m128i flip, char* out) {
  __m128i r[4];
  for (int i = 0; i < 4; ++i) r[i] = _mm_xor_si128(load(rows[i]), flip);
  const __m128i low01 = _mm_unpacklo_epi8(r[0], r[1]), high01 = _mm_unpackhi_epi8(r[0], r[1]);
  const __m128i low23 = _mm_unpacklo_epi8(r[2], r[3]), high23 = _mm_unpackhi_epi8(r[2], r[3]);
  store(out, _mm_unpacklo_epi16(low01, low23));
  store(out + 16, _mm_unpackhi_epi16(low01, low23));
  store(out + 32, _mm_unpacklo_epi16(high01, high23));
  store(out + 48, _mm_unpackhi_epi16(high01, high23));
}

}  // namespace

std::string DotColumns::recipe() const {
  return message("dot_columns/", bytes_ ? "bytes" : "crosswise", "/", is_signed_ ? "int8" : "uint8",
                 "/", n_, "x", k_);
}

void DotColumns::pack_step(const uint8_t* from, int64_t k_stride, int64_t column_stride,
                           int64_t count, int64_t columns, char* out, int32_t* sums) const {
  std::memset(out, 0, kPanel * kStep);
  for (int64_t j = 0; j < columns; ++j)
    for (int64_t i = 0; i < count; ++i) {
      const uint8_t byte = from[i * k_stride + j * column_stride];
      const int32_t value = is_signed_ ? int32_t{static_cast<int8_t>(byte)} : int32_t{byte};
      sums[j] += value + shift();
      if (bytes_) {
        out[j * kStep + i] = static_cast<char>(value + shift());
      } else {
        const auto wide = static_cast<int16_t>(value);
        std::memcpy(out + j * kStep + i * 2, &wide, sizeof wide);
      }
    }
}

void DotColumns::pack(const void* source, int64_t k_stride, int64_t column_stride,
                      void* out) const {
  const auto* const from = static_cast<const uint8_t*>(source);
  auto* const to = static_cast<char*>(out);
  auto* const sums = reinterpret_cast<int32_t*>(to + panels() * panel_bytes());
  int32_t* const own = sums + panels() * kPanel;
  std::fill_n(sums, (crosswise_ ? 2 : 1) * panels() * kPanel, 0);
  const int64_t step = bytes_ ? 4 : 2;
  const __m128i flip = _mm_set1_epi8(is_signed_ ? 0 : static_cast<char>(0x80));
  const __m128i ones = _mm_set1_epi16(1);
  // A few rows of the source at a time are read in order.
  for (int64_t s = 0; s < steps_; ++s)
    for (int64_t p = 0; p < panels(); ++p) {
      const int64_t count = std::clamp<int64_t>(k_ - s * step, 0, step),
                    columns = std::min(kPanel, n_ - p * kPanel);
      const uint8_t* const at = from + s * step * k_stride + p * kPanel * column_stride;
      char* const line = to + p * panel_bytes() + this->line(s) * kPanel * kStep;
      int32_t* const column_sums = sums + p * kPanel;
      if (column_stride != 1 || columns < kPanel || count < step) {
        pack_step(at, k_stride, column_stride, count, columns, line, column_sums);
      } else if (!bytes_) {
        zip_int16_pairs(is_signed_, at, at + k_stride, kPanel, reinterpret_cast<int16_t*>(line));
        for (int64_t j = 0; j < kPanel; j += 4)
          store(reinterpret_cast<char*>(column_sums + j),
                _mm_add_epi32(load(column_sums + j), _mm_madd_epi16(load(line + j * 4), ones)));
      } else {
        const uint8_t* const rows[4] = {at, at + k_stride, at + 2 * k_stride, at + 3 * k_stride};
        interleave(rows, flip, line);
        for (int64_t j = 0; j < kPanel; j += 4) {
          const __m128i bytes = load(line + j * 4);
          const __m128i even = _mm_srai_epi16(_mm_slli_epi16(bytes, 8), 8);
          const __m128i odd = _mm_srai_epi16(bytes, 8);
          const __m128i sum = _mm_madd_epi16(_mm_add_epi16(even, odd), ones);
          store(reinterpret_cast<char*>(column_sums + j),
                _mm_add_epi32(load(column_sums + j), sum));
        }
      }
      if (crosswise_ && s % 2 == 1) add_own_products(to + p * panel_bytes(), s, own + p * kPanel);
    }
}

void DotColumns::add_own_products(const char* panel, int64_t s, int32_t* own) {
  const char* const first = panel + (s - 1) * kPanel * kStep;
  for (int64_t j = 0; j < kPanel; j += 4)
    store(reinterpret_cast<char*>(own + j),
          _mm_add_epi32(load(own + j), _mm_madd_epi16(load(first + j * kStep),
                                                      load(first + (kPanel + j) * kStep))));
}

namespace {

PFRT_AVX2_INLINE inline int64_t sum_of_lanes(__m256i sums) {
  const __m128i half =
      _mm_add_epi64(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
  return _mm_cvtsi128_si64(_mm_add_epi64(half, _mm_unpackhi_epi64(half, half)));
}

// Bytes as int16, and their own products; gives how many bytes there were in whole vectors.
PFRT_AVX2 int64_t widen_vectors(bool is_signed, const uint8_t* bytes, int64_t n, int16_t* out,
                                uint32_t* own) {
  __m256i sums = _mm256_setzero_si256();
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const __m128i x = load(bytes + i);
    const __m256i wide = is_signed ? _mm256_cvtepi8_epi16(x) : _mm256_cvtepu8_epi16(x);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), wide);
    // The second of two pairs meets the first, and nothing meets the second.
    sums = _mm256_add_epi32(sums, _mm256_madd_epi16(wide, _mm256_srli_epi64(wide, 32)));
  }
  *own = static_cast<uint32_t>(sum_of_lanes(sums));
  return i;
}

// Sums of each eight neighbours of 32 bytes, after |flips|.
PFRT_AVX2_INLINE inline __m256i sums_of_eight(const uint8_t* bytes, __m256i flips) {
  const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes));
  return _mm256_sad_epu8(_mm256_xor_si256(x, flips), _mm256_setzero_si256());
}

// Sums the bytes of whole vectors, each after |flip|, in |sum|; returns the number of bytes.
PFRT_AVX2 int64_t sum_vectors(const uint8_t* bytes, int64_t n, uint8_t flip, int64_t* sum) {
  constexpr int64_t kLanes = 32;
  const __m256i flips = _mm256_set1_epi8(static_cast<char>(flip));
  __m256i sums = _mm256_setzero_si256(), others = sums;
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    sums = _mm256_add_epi64(sums, sums_of_eight(bytes + i, flips));
    others = _mm256_add_epi64(others, sums_of_eight(bytes + i + kLanes, flips));
  }
  if (i + kLanes <= n) {
    sums = _mm256_add_epi64(sums, sums_of_eight(bytes + i, flips));
    i += kLanes;
  }
  *sum = sum_of_lanes(_mm256_add_epi64(sums, others));
  return i;
}

}  // namespace

uint32_t DotRows::copy(const void* row, void* out) const {
  if (!bytes_) {
    const auto* const bytes = static_cast<const uint8_t*>(row);
    auto* const wide = static_cast<int16_t*>(out);
    const int64_t steps = row_bytes_ / kStep;
    uint32_t own = 0;
    const int64_t done = widen_vectors(is_signed_, bytes, k_, wide, &own);
    if (done == k_) return own;
    widen_bytes(is_signed_, bytes + done, k_ - done, wide + done);
    std::fill(wide + k_, wide + 2 * steps, int16_t{0});
    return own + own_products(wide + done, kWhole, steps - done / 2);
  }
  auto* const to = static_cast<char*>(out);
  std::memcpy(to, row, static_cast<size_t>(k_));
  std::memset(to + k_, flipped() ? 0x80 : 0, static_cast<size_t>(row_bytes_ - k_));
  return 0;
}

int32_t DotRows::sum(const void* row) const {
  const auto* const x = static_cast<const uint8_t*>(row);
  const uint8_t flip = is_signed_ ? 0x80 : 0;  // int8 is uint8 of 128 more
  int64_t sum = 0;
  for (int64_t i = sum_vectors(x, k_, flip, &sum); i < k_; ++i) sum += x[i] ^ flip;
  if (is_signed_ && !flipped()) sum -= 128 * k_;
  return static_cast<int32_t>(static_cast<uint32_t>(sum));
}

}  // namespace pfrt::cpu
