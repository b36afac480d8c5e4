// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/matmul/micro.h"

#include <immintrin.h>

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

// R rows by V groups of four elements, left to the compiler's baseline vectors.
template <typename T, int R, int V>
struct Plain {
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
using PlainFloat = Plain<float, R, V>;
template <int R, int V>
using PlainDouble = Plain<double, R, V>;
template <int R, int V>
using Plain32 = Plain<uint32_t, R, V>;
template <int R, int V>
using Plain64 = Plain<uint64_t, R, V>;

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

template <>
const MicroKernels<float>& micro_kernels() {
  static const MicroKernels<float> avx512 = table<float, Avx512, 16, 12, 2, 3, 8>();
  static const MicroKernels<float> avx2 = table<float, Avx2, 8, 6, 2, 2, 6>();
  static const MicroKernels<float> plain = table<float, PlainFloat, 4, 4, 2, 1, 8>();
  const Isa have = isa();
  return have >= Isa::kAvx512 ? avx512 : have >= Isa::kAvx2 ? avx2 : plain;
}

template <>
const MicroKernels<double>& micro_kernels() {
  static const MicroKernels<double> plain = table<double, PlainDouble, 4, 4, 2, 1, 4>();
  return plain;
}

template <>
const MicroKernels<uint32_t>& micro_kernels() {
  static const MicroKernels<uint32_t> plain = table<uint32_t, Plain32, 4, 4, 2, 1, 4>();
  return plain;
}

template <>
const MicroKernels<uint64_t>& micro_kernels() {
  static const MicroKernels<uint64_t> plain = table<uint64_t, Plain64, 4, 4, 2, 1, 4>();
  return plain;
}

}  // namespace pfrt::cpu
