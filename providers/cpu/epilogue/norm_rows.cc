// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/epilogue/norm_rows.h"

#include <cmath>

#include "providers/cpu/row/pace.h"

namespace pfrt::cpu {
namespace {

// Eight sums at once, added pairwise at the end.
template <typename T, typename Fn>
double add_up_part(const T* x, int64_t n, Fn&& fn) {
  double s[8] = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int64_t j = 0; j < 8; ++j) s[j] += fn(static_cast<double>(x[i + j]));
  for (; i < n; ++i) s[i & 7] += fn(static_cast<double>(x[i]));
  return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
}

template <typename T, typename Fn>
double add_up(Pace& pace, const T* x, int64_t n, Fn&& fn) {
  double sum = 0;
  in_chunks(pace, n,
            [&](int64_t begin, int64_t end) { sum += add_up_part(x + begin, end - begin, fn); });
  return sum;
}

}  // namespace

template <typename T>
double row_sum(Pace& pace, const T* x, int64_t n) {
  return add_up(pace, x, n, [](double v) { return v; });
}

template <typename T>
double row_squares(Pace& pace, const T* x, int64_t n, double center) {
  return add_up(pace, x, n, [center](double v) { return (v - center) * (v - center); });
}

template <typename T>
double row_magnitudes(Pace& pace, const T* x, int64_t n) {
  return add_up(pace, x, n, [](double v) { return std::fabs(v); });
}

template double row_sum(Pace&, const float*, int64_t);
template double row_sum(Pace&, const double*, int64_t);
template double row_squares(Pace&, const float*, int64_t, double);
template double row_squares(Pace&, const double*, int64_t, double);
template double row_magnitudes(Pace&, const float*, int64_t);
template double row_magnitudes(Pace&, const double*, int64_t);

}  // namespace pfrt::cpu
