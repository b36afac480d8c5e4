// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/matmul/rows_16bit.h"

#include <immintrin.h>

#include <algorithm>

#include "providers/cpu/elements/ceil_div.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kPanel = Panel16Bit::kColumns, kLanes = 8;
constexpr int64_t kVectors = kPanel / kLanes;
constexpr int64_t kMostPanels = 4;  // read by turns
constexpr int64_t kBlock = 64;  // k of a sum before it is added to others, which keeps errors small
constexpr int64_t kAhead = 2048;  // bytes
constexpr int64_t kLeastTaskBytes = 32 << 10, kTaskBytes = 512 << 10, kWantedTasks = 8;

// Eight columns of the even or the odd k, as float32.
template <ColumnType kType, bool kOdd>
__attribute__((target("avx2,fma,f16c"))) inline __m256 widened(const uint32_t* pairs, int64_t at) {
  if constexpr (kType == ColumnType::kFp16) {
    const uint16_t* const elements = reinterpret_cast<const uint16_t*>(pairs) + (kOdd ? kPanel : 0);
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(elements + at)));
  } else {
    const __m256i both = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(pairs + at));
    const __m256i high = _mm256_set1_epi32(static_cast<int>(0xffff0000));
    return _mm256_castsi256_ps(kOdd ? _mm256_and_si256(both, high) : _mm256_slli_epi32(both, 16));
  }
}

template <ColumnType kType, int R, int P, bool kOdd>
__attribute__((target("avx2,fma,f16c"))) inline void add_products(const float* a, int64_t lda,
                                                                  const uint32_t* b, int64_t ldb,
                                                                  __m256 (&sum)[R][P * kVectors]) {
  constexpr int kRowVectors = P * kVectors;
  __m256 column[kRowVectors];
#pragma GCC unroll 16
  for (int v = 0; v < kRowVectors; ++v)
    column[v] = widened<kType, kOdd>(b + v / kVectors * ldb, v % kVectors * kLanes);
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    const __m256 x = _mm256_broadcast_ss(a + r * lda + kOdd);
#pragma GCC unroll 16
    for (int v = 0; v < kRowVectors; ++v) sum[r][v] = _mm256_fmadd_ps(x, column[v], sum[r][v]);
  }
}

// c[r * kMostPanels * kPanel + j] (+)= sum over k < kn of a[r * lda + k] * column j, for R rows and
// the columns of P panels |ldb| lanes apart: a chain in the order of k, whatever R and P are.
template <ColumnType kType, int R, int P>
__attribute__((target("avx2,fma,f16c"))) void multiply(int64_t kn, const float* a, int64_t lda,
                                                       const uint32_t* b, int64_t ldb, float* c,
                                                       bool accumulate) {
  constexpr int kRowVectors = P * kVectors;
  __m256 sum[R][kRowVectors];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < kRowVectors; ++v) sum[r][v] = _mm256_setzero_ps();
  int64_t k = 0;
  for (; k + 2 <= kn; k += 2, b += kPanel) {
    // The processor reads ahead by itself where there are many panels, but not far enough with one
    // or two.
    if constexpr (P < kMostPanels) {
#pragma GCC unroll 16
      for (int p = 0; p < P; ++p)
        _mm_prefetch(reinterpret_cast<const char*>(b + p * ldb) + kAhead, _MM_HINT_T0);
    }
    add_products<kType, R, P, false>(a + k, lda, b, ldb, sum);
    add_products<kType, R, P, true>(a + k, lda, b, ldb, sum);
  }
  if (k < kn) add_products<kType, R, P, false>(a + k, lda, b, ldb, sum);
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < kRowVectors; ++v) {
      float* const to = c + r * kMostPanels * kPanel + v * kLanes;
      _mm256_storeu_ps(to, accumulate ? _mm256_add_ps(_mm256_loadu_ps(to), sum[r][v]) : sum[r][v]);
    }
}

using Multiply = void (*)(int64_t kn, const float* a, int64_t lda, const uint32_t* b, int64_t ldb,
                          float* c, bool accumulate);

// The code for a number of rows: it takes as many panels at a time as there are registers for the
// sums.
struct Form {
  int64_t panels;
  Multiply several, one;
};
template <ColumnType kType>
constexpr Form kForms[Rows16Bit::kMostRows] = {{4, multiply<kType, 1, 4>, multiply<kType, 1, 1>},
                                               {2, multiply<kType, 2, 2>, multiply<kType, 2, 1>},
                                               {1, multiply<kType, 3, 1>, multiply<kType, 3, 1>},
                                               {1, multiply<kType, 4, 1>, multiply<kType, 4, 1>}};

}  // namespace

Rows16Bit::Rows16Bit(int64_t m, const Columns& columns, ColumnType type)
    : m_(m), n_(columns.n), k_(columns.k), type_(type) {
  constexpr int64_t kWide = kMostPanels * kPanel;
  const int64_t wide_bytes =
      kMostPanels * Panel16Bit::lanes(k_) * static_cast<int64_t>(sizeof(uint32_t));
  const int64_t wanted = ceil_div(n_, kWide) * wide_bytes / kWantedTasks;
  task_cols_ = ceil_div(std::clamp(wanted, kLeastTaskBytes, kTaskBytes), wide_bytes) * kWide;
}

void Rows16Bit::run(const Run& run, const Finish& finish) const {
  if (m_ <= 0) return;
  const Form& form =
      (type_ == ColumnType::kFp16 ? kForms<ColumnType::kFp16> : kForms<ColumnType::kBf16>)[m_ - 1];
  const int64_t lanes = Panel16Bit::lanes(k_);
  run.blocks(n_, task_cols_, [&](int64_t begin, int64_t end) {
    float* const out = run.output<float>(0);
    alignas(32) float sums[kMostRows * kMostPanels * kPanel];
    // Computes |panels| panels from column |j| on, |apart| panels from each other; columns from
    // |end| on are left out.
    const auto multiply_panels = [&](Multiply fn, int64_t panels, int64_t j, int64_t apart) {
      const uint32_t* const panel = run.packed<uint32_t>() + j / kPanel * lanes;
      for (int64_t k = 0; k < k_; k += kBlock)
        fn(std::min(kBlock, k_ - k), run.input<float>(0) + k, k_, panel + k / 2 * kPanel,
           apart * lanes, sums, k > 0);
      for (int64_t r = 0; r < m_; ++r)
        for (int64_t p = 0; p < panels; ++p) {
          const int64_t col = j + p * apart * kPanel;
          std::copy_n(sums + (r * kMostPanels + p) * kPanel, std::min(kPanel, end - col),
                      out + r * n_ + col);
        }
    };
    // Reading in several places at once keeps more of memory on its way.
    const int64_t apart = (end - begin) / (form.panels * kPanel);
    for (int64_t i = 0; i < apart && !run.stopped(); ++i)
      multiply_panels(form.several, form.panels, begin + i * kPanel, apart);
    for (int64_t j = begin + form.panels * apart * kPanel; j < end && !run.stopped(); j += kPanel)
      multiply_panels(form.one, 1, j, 1);
    for (int64_t r = 0; r < m_; ++r) {
      if (finish) finish(out + r * n_ + begin, r, begin, end - begin);
      if (end - begin < n_) run.apply_epilogue(r * n_ + begin, r * n_ + end);
    }
    if (end - begin == n_) run.apply_epilogue(0, m_ * n_);
  });
}

void Rows16Bit::multiply_row(const float* row, const Columns16Bit& columns, int64_t j, int64_t n,
                             float* out) {
  alignas(32) float sums[kMostPanels * kPanel];
  for (const int64_t end = j + n; j < end; j += kPanel, out += kPanel) {
    const uint32_t* const panel = columns.panel(j / kPanel);
    for (int64_t k = 0; k < columns.k(); k += kBlock)
      kForms<ColumnType::kBf16>[0].one(std::min(kBlock, columns.k() - k), row + k, columns.k(),
                                       panel + k / 2 * kPanel, 0, sums, k > 0);
    std::copy_n(sums, std::min(kPanel, end - j), out);
  }
}

}  // namespace pfrt::cpu
