// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/matmul/micro.h"

#include <immintrin.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "providers/cpu/isa/isa.h"

namespace pfrt::cpu {
namespace {

// R rows by V vectors of 16: 12 x 2 fills 24 of 32 registers with sums, two hold B, A is broadcast
// from memory.
template <int R, int V>
struct Avx512 {
  __attribute__((target("avx512f"))) static void run(int64_t kn, const float* a, const float* b,
                                                     int64_t ldb, float* c, int64_t ldc,
                                                     bool accumulate) {
    __m512 sum[R][V];
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) sum[r][v] = _mm512_setzero_ps();
    for (int64_t k = 0; k < kn; ++k, a += R, b += ldb) {
      __m512 row[V];
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) row[v] = _mm512_loadu_ps(b + 16 * v);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        const __m512 x = _mm512_set1_ps(a[r]);
#pragma GCC unroll 16
        for (int v = 0; v < V; ++v) sum[r][v] = _mm512_fmadd_ps(x, row[v], sum[r][v]);
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) {
        float* to = c + r * ldc + 16 * v;
        _mm512_storeu_ps(to,
                         accumulate ? _mm512_add_ps(_mm512_loadu_ps(to), sum[r][v]) : sum[r][v]);
      }
  }
};

// R rows by V vectors of 8: 6 x 2 fills 12 of 16 registers with sums.
template <int R, int V>
struct Avx2 {
  __attribute__((target("avx2,fma"))) static void run(int64_t kn, const float* a, const float* b,
                                                      int64_t ldb, float* c, int64_t ldc,
                                                      bool accumulate) {
    __m256 sum[R][V];
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) sum[r][v] = _mm256_setzero_ps();
    for (int64_t k = 0; k < kn; ++k, a += R, b += ldb) {
      __m256 row[V];
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) row[v] = _mm256_loadu_ps(b + 8 * v);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        const __m256 x = _mm256_set1_ps(a[r]);
#pragma GCC unroll 16
        for (int v = 0; v < V; ++v) sum[r][v] = _mm256_fmadd_ps(x, row[v], sum[r][v]);
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) {
        float* to = c + r * ldc + 8 * v;
        _mm256_storeu_ps(to,
                         accumulate ? _mm256_add_ps(_mm256_loadu_ps(to), sum[r][v]) : sum[r][v]);
      }
  }
};

// R rows by C columns, both with k contiguous. Sums of so many k are added to totals, and lanes to
// each other once, at the end.
constexpr int64_t kDotChain = 256;

template <int R, int C>
struct Dot512 {
  __attribute__((target("avx512f"))) static void run(int64_t kn, const float* a, int64_t lda,
                                                     const float* b, int64_t ldb, float* c,
                                                     int64_t ldc, bool accumulate) {
    __m512 total[R][C];
    clear(total);
    for (int64_t k = 0; k < kn;) {
      const int64_t end = std::min(kn, k + kDotChain);
      __m512 sum[R][C];
      clear(sum);
      for (; k + 16 <= end; k += 16) add(a + k, lda, b + k, ldb, sum, 0xffff);
      if (k < end) add(a + k, lda, b + k, ldb, sum, static_cast<__mmask16>((1u << (end - k)) - 1));
      k = end;
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
        for (int j = 0; j < C; ++j) total[r][j] = _mm512_add_ps(total[r][j], sum[r][j]);
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
      for (int j = 0; j < C; ++j) {
        alignas(64) float lanes[16];
        _mm512_store_ps(lanes, total[r][j]);
        for (int half = 8; half > 0; half /= 2)
          for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
        float& to = c[r * ldc + j];
        to = accumulate ? to + lanes[0] : lanes[0];
      }
  }

 private:
  __attribute__((target("avx512f"), always_inline)) static void clear(__m512 (&sum)[R][C]) {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
      for (int j = 0; j < C; ++j) sum[r][j] = _mm512_setzero_ps();
  }

  // Adds the products of 16 values of k to |sum|, or of those |here|.
  __attribute__((target("avx512f"), always_inline)) static void add(const float* a, int64_t lda,
                                                                    const float* b, int64_t ldb,
                                                                    __m512 (&sum)[R][C],
                                                                    __mmask16 here) {
    __m512 row[R];
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) row[r] = _mm512_maskz_loadu_ps(here, a + r * lda);
#pragma GCC unroll 16
    for (int j = 0; j < C; ++j) {
      const __m512 x = _mm512_maskz_loadu_ps(here, b + j * ldb);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) sum[r][j] = _mm512_fmadd_ps(row[r], x, sum[r][j]);
    }
  }
};

template <int R, int C>
struct Dot256 {
  static constexpr int64_t kLanes = 8;

  __attribute__((target("avx2,fma"))) static void run(int64_t kn, const float* a, int64_t lda,
                                                      const float* b, int64_t ldb, float* c,
                                                      int64_t ldc, bool accumulate) {
    __m256 total[R][C];
    clear(total);
    for (int64_t k = 0; k < kn;) {
      const int64_t end = std::min(kn, k + kDotChain);
      __m256 sum[R][C];
      clear(sum);
      for (; k + 16 <= end; k += 16) {
        add<false>(a + k, lda, b + k, ldb, sum, kLanes);
        add<false>(a + k + 8, lda, b + k + 8, ldb, sum, kLanes);
      }
      if (k + 8 <= end) {
        add<false>(a + k, lda, b + k, ldb, sum, kLanes);
        k += 8;
      }
      if (k < end) add<true>(a + k, lda, b + k, ldb, sum, end - k);
      k = end;
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
        for (int j = 0; j < C; ++j) total[r][j] = _mm256_add_ps(total[r][j], sum[r][j]);
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
      for (int j = 0; j < C; ++j) {
        const __m128 four =
            _mm_add_ps(_mm256_castps256_ps128(total[r][j]), _mm256_extractf128_ps(total[r][j], 1));
        const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
        const float one = _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
        float& to = c[r * ldc + j];
        to = accumulate ? to + one : one;
      }
  }

 private:
  __attribute__((target("avx2,fma"), always_inline)) static void clear(__m256 (&sum)[R][C]) {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
      for (int j = 0; j < C; ++j) sum[r][j] = _mm256_setzero_ps();
  }

  template <bool kPart>
  __attribute__((target("avx2,fma"), always_inline)) static __m256 load(const float* x,
                                                                        __m256i mask) {
    return kPart ? _mm256_maskload_ps(x, mask) : _mm256_loadu_ps(x);
  }

  // Adds the products of 8 values of k to |sum|, or of the first |n|.
  template <bool kPart>
  __attribute__((target("avx2,fma"), always_inline)) static void add(const float* a, int64_t lda,
                                                                     const float* b, int64_t ldb,
                                                                     __m256 (&sum)[R][C],
                                                                     int64_t n) {
    const __m256i mask = kPart ? first_lanes(n) : _mm256_setzero_si256();
    __m256 row[R];
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) row[r] = load<kPart>(a + r * lda, mask);
#pragma GCC unroll 16
    for (int j = 0; j < C; ++j) {
      const __m256 x = load<kPart>(b + j * ldb, mask);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) sum[r][j] = _mm256_fmadd_ps(row[r], x, sum[r][j]);
    }
  }

  __attribute__((target("avx2"))) static __m256i first_lanes(int64_t n) {
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), lanes);
  }
};

template <template <int, int> class K>
constexpr DotKernels dots() {
  return {{8, 4, 4, 4},
          {K<1, 8>::run, K<2, 4>::run, K<3, 4>::run, K<4, 4>::run},
          {K<1, 1>::run, K<2, 1>::run, K<3, 1>::run, K<4, 1>::run}};
}

// R rows by lines of B, the sums held in C. Other vectors would not be faster than memory either.
template <int R>
struct Lines256 {
  static constexpr int kTogether = 8;  // lines

  template <int G>
  __attribute__((target("avx2,fma"))) static void add(const float* a, const float* b, int64_t ldb,
                                                      int64_t n, float* c, int64_t ldc,
                                                      bool first) {
    int64_t j = 0;
    for (; j + 16 <= n; j += 16) {
      __m256 sum[R][2];
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
        for (int v = 0; v < 2; ++v)
          sum[r][v] = first ? _mm256_setzero_ps() : _mm256_loadu_ps(c + r * ldc + j + 8 * v);
#pragma GCC unroll 16
      for (int g = 0; g < G; ++g) {
        const __m256 low = _mm256_loadu_ps(b + g * ldb + j);
        const __m256 high = _mm256_loadu_ps(b + g * ldb + j + 8);
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r) {
          const __m256 x = _mm256_broadcast_ss(a + g * R + r);
          sum[r][0] = _mm256_fmadd_ps(x, low, sum[r][0]);
          sum[r][1] = _mm256_fmadd_ps(x, high, sum[r][1]);
        }
      }
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
        for (int v = 0; v < 2; ++v) _mm256_storeu_ps(c + r * ldc + j + 8 * v, sum[r][v]);
    }
    for (; j < n; ++j)
      for (int r = 0; r < R; ++r) {
        float sum = first ? 0 : c[r * ldc + j];
        for (int g = 0; g < G; ++g) sum = __builtin_fmaf(a[g * R + r], b[g * ldb + j], sum);
        c[r * ldc + j] = sum;
      }
  }

  __attribute__((target("avx2,fma"))) static void run(int64_t kn, const float* a, const float* b,
                                                      int64_t ldb, int64_t n, float* c,
                                                      int64_t ldc) {
    int64_t k = 0;
    for (; k + kTogether <= kn; k += kTogether)
      add<kTogether>(a + k * R, b + k * ldb, ldb, n, c, ldc, k == 0);
    for (; k < kn; ++k) add<1>(a + k * R, b + k * ldb, ldb, n, c, ldc, k == 0);
  }
};

// R rows by V groups of four elements, left to the compiler's baseline vectors.
template <typename T, int R, int V>
struct Reference {
  static void run(int64_t kn, const T* a, const T* b, int64_t ldb, T* c, int64_t ldc,
                  bool accumulate) {
    constexpr int kWidth = 4 * V;
    T sum[R][kWidth] = {};
    for (int64_t k = 0; k < kn; ++k, a += R, b += ldb) {
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        const T x = a[r];
#pragma GCC unroll 16
        for (int j = 0; j < kWidth; ++j) sum[r][j] += x * b[j];
      }
    }
    for (int r = 0; r < R; ++r)
      for (int j = 0; j < kWidth; ++j) {
        T& to = c[r * ldc + j];
        to = accumulate ? to + sum[r][j] : sum[r][j];
      }
  }
};
template <int R, int V>
using ReferenceFloat = Reference<float, R, V>;
template <int R, int V>
using ReferenceDouble = Reference<double, R, V>;
template <int R, int V>
using Reference32 = Reference<uint32_t, R, V>;
template <int R, int V>
using Reference64 = Reference<uint64_t, R, V>;

template <typename T, template <int, int> class K, int V, size_t... I>
void fill(MicroFn<T>* slots, std::index_sequence<I...>) {
  ((slots[I] = K<static_cast<int>(I) + 1, V>::run), ...);
}

template <typename T, template <int, int> class K, int Lanes, size_t Rows, int V, size_t WideRows,
          int WideV>
MicroKernels<T> table() {
  MicroKernels<T> t{};
  t.rows = Rows;
  t.cols = Lanes * V;
  t.half_cols = Lanes * (V / 2);
  t.wide_rows = WideRows;
  t.wide_cols = Lanes * WideV;
  fill<T, K, V>(t.full, std::make_index_sequence<Rows>());
  fill<T, K, V / 2>(t.half, std::make_index_sequence<Rows>());
  fill<T, K, WideV>(t.wide, std::make_index_sequence<WideRows>());
  return t;
}

}  // namespace

const DotKernels& dot_kernels() {
  static constexpr DotKernels kAvx512 = dots<Dot512>(), kAvx2 = dots<Dot256>(), kNone{};
  const Isa have = isa();
  return have >= Isa::kAvx512 ? kAvx512 : have >= Isa::kAvx2 ? kAvx2 : kNone;
}

const LineKernels& line_kernels() {
  static constexpr LineKernels kAvx2{
      {Lines256<1>::run, Lines256<2>::run, Lines256<3>::run, Lines256<4>::run}},
      kNone{};
  return isa() >= Isa::kAvx2 ? kAvx2 : kNone;
}

template <>
const MicroKernels<float>& micro_kernels() {
  static const MicroKernels<float> avx512 = table<float, Avx512, 16, 12, 2, 3, 8>();
  static const MicroKernels<float> avx2 = table<float, Avx2, 8, 6, 2, 2, 6>();
  static const MicroKernels<float> reference = table<float, ReferenceFloat, 4, 4, 2, 1, 8>();
  const Isa have = isa();
  return have >= Isa::kAvx512 ? avx512 : have >= Isa::kAvx2 ? avx2 : reference;
}

template <>
const MicroKernels<double>& micro_kernels() {
  static const MicroKernels<double> reference = table<double, ReferenceDouble, 4, 4, 2, 1, 4>();
  return reference;
}

template <>
const MicroKernels<uint32_t>& micro_kernels() {
  static const MicroKernels<uint32_t> reference = table<uint32_t, Reference32, 4, 4, 2, 1, 4>();
  return reference;
}

template <>
const MicroKernels<uint64_t>& micro_kernels() {
  static const MicroKernels<uint64_t> reference = table<uint64_t, Reference64, 4, 4, 2, 1, 4>();
  return reference;
}

}  // namespace pfrt::cpu
