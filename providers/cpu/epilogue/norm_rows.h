// SPDX-License-Identifier: Apache-2.0
//
// Rows of a tensor as normalisations see them: loaded in the compute type, measured in double,
// stored again, each by a pace. Sums are taken in an order that depends on the length alone. Pure
// functions; thread-safe.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "providers/cpu/elements/load.h"
#include "providers/cpu/kernel/stop_poll.h"

namespace pfrt::cpu {

template <typename T>
inline constexpr pfrt_dtype kNormType =
    std::is_same_v<T, double> ? PFRT_DTYPE_FLOAT64 : PFRT_DTYPE_FLOAT32;

// Returns |n| elements from |first| on as T: in place where that is their type, else converted into
// |buffer|.
template <typename T>
const T* load_row(Pace& pace, pfrt_dtype dtype, const void* data, int64_t first, int64_t n,
                  T* buffer) {
  if (dtype == kNormType<T>) return static_cast<const T*>(data) + first;
  in_chunks(pace, n, [&](int64_t begin, int64_t end) {
    load_fn<T>(dtype)(buffer + begin, data, first + begin, 1, end - begin);
  });
  return buffer;
}
// Address at which a kernel computes a row of results; store_row completes it.
template <typename T>
T* place_row(pfrt_dtype dtype, void* data, int64_t first, T* buffer) {
  return dtype == kNormType<T> ? static_cast<T*>(data) + first : buffer;
}
template <typename T>
void store_row(Pace& pace, pfrt_dtype dtype, void* data, int64_t first, int64_t n, const T* row) {
  if (dtype == kNormType<T>) return;
  in_chunks(pace, n, [&](int64_t begin, int64_t end) {
    store_fn<T>(dtype)(data, first + begin, row + begin, end - begin);
  });
}

// |avx2| says that AVX2 may be used; results have the same bits without it.
template <typename T>
double row_sum(Pace& pace, const T* x, int64_t n, bool avx2 = false);
// Sum of (x - center)^2.
template <typename T>
double row_squares(Pace& pace, const T* x, int64_t n, double center, bool avx2 = false);
template <typename T>
double row_magnitudes(Pace& pace, const T* x, int64_t n);

struct RowNormalisation {
  int64_t length;
  double epsilon;
  bool centered;
  bool avx2 = false;  // whether AVX2 may be used
};

// y = (x - center) * factor * scale + bias for |n| elements; |bias| may be null, |y| may be |x|.
template <typename T>
void scale_and_shift(const T* x, T center, T factor, const T* scale, const T* bias, T* y, int64_t n,
                     bool avx2);

// y = (x - mean) * scale / deviation + bias, without the mean where not centered; |bias| may be
// null, |y| may be |x|. Gives the mean and 1 / deviation.
template <typename T>
void normalise_row(Pace& pace, const RowNormalisation& f, const T* x, const T* scale, const T* bias,
                   T* y, double* out_mean, double* out_inverse) {
  const double n = static_cast<double>(std::max<int64_t>(f.length, 1));
  const double mean = f.centered ? row_sum(pace, x, f.length, f.avx2) / n : 0;
  const double inverse =
      1 / std::sqrt(row_squares(pace, x, f.length, mean, f.avx2) / n + f.epsilon);
  const T center = static_cast<T>(mean), factor = static_cast<T>(inverse);
  in_chunks(pace, f.length, [&](int64_t begin, int64_t end) {
    scale_and_shift(x + begin, center, factor, scale + begin,
                    bias == nullptr ? nullptr : bias + begin, y + begin, end - begin, f.avx2);
  });
  *out_mean = mean;
  *out_inverse = inverse;
}

}  // namespace pfrt::cpu
