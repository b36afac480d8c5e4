// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "providers/cpu/isa/isa.h"
#include "providers/cpu/kernels/resize/rows.h"
#include "providers/cpu/row/convert.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kTaskBytes = 1 << 15;

// |n| times |bytes| bytes, from |index| * |bytes| on of |x|.
template <size_t kBytes>
void gather_fixed(char* y, const char* x, const int64_t* index, int64_t n) {
  for (int64_t j = 0; j < n; ++j)
    std::memcpy(y + j * static_cast<int64_t>(kBytes), x + index[j] * static_cast<int64_t>(kBytes),
                kBytes);
}

// How far 4 elements are from |base|.
__attribute__((target("avx2"), always_inline)) inline __m256i distances(const int64_t* index,
                                                                        __m256i base) {
  return _mm256_sub_epi64(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(index)), base);
}

// For elements of 4 bytes: 8 outputs that come from 8 contiguous inputs are a permutation of them.
// |x| has |count| elements.
__attribute__((target("avx2"))) void gather_near(char* y, const char* x, const int64_t* index,
                                                 int64_t n, int64_t count) {
  constexpr int64_t kLanes = 8, kBytes = 4;
  const __m256i even = _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6);
  const __m256i far = _mm256_set1_epi64x(~(kLanes - 1));
  if (n < kLanes || count < kLanes) return gather_fixed<kBytes>(y, x, index, n);
  for (int64_t i = 0; i < n; i += kLanes) {
    const int64_t j = std::min(i, n - kLanes);
    const int64_t first = std::min({index[j], index[j + kLanes - 1], count - kLanes});
    const __m256i base = _mm256_set1_epi64x(first);
    const __m256i low = distances(index + j, base), high = distances(index + j + 4, base);
    if (_mm256_testz_si256(_mm256_or_si256(low, high), far) == 0) {
      gather_fixed<kBytes>(y + j * kBytes, x, index + j, kLanes);
      continue;
    }
    const __m256i order = _mm256_blend_epi32(_mm256_permutevar8x32_epi32(low, even),
                                             _mm256_permutevar8x32_epi32(high, even), 0xf0);
    const __m256i pixels = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + first * kBytes));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(y + j * kBytes),
                        _mm256_permutevar8x32_epi32(pixels, order));
  }
}

// |n| times |bytes| bytes, from |index| * |bytes| on of |x|, where there are |count| times so many.
void gather(char* y, const char* x, const int64_t* index, int64_t n, int64_t bytes, int64_t count) {
  if (bytes == 4 && isa() >= Isa::kAvx2) return gather_near(y, x, index, n, count);
  switch (bytes) {
    case 1:
      return gather_fixed<1>(y, x, index, n);
    case 2:
      return gather_fixed<2>(y, x, index, n);
    case 4:
      return gather_fixed<4>(y, x, index, n);
    case 8:
      return gather_fixed<8>(y, x, index, n);
    case 16:
      return gather_fixed<16>(y, x, index, n);
    default:
      for (int64_t j = 0; j < n; ++j)
        std::memcpy(y + j * bytes, x + index[j] * bytes, static_cast<size_t>(bytes));
  }
}

// |n| elements of |value|.
void fill(char* y, const char* value, int64_t n, int64_t element_bytes) {
  for (int64_t i = 0; i < n; ++i)
    std::memcpy(y + i * element_bytes, value, static_cast<size_t>(element_bytes));
}

}  // namespace

void resize_nearest(const Run& run, const ResizeForm& form, const ResizePlan& plan) {
  const int64_t size = static_cast<int64_t>(dtype_size(form.dtype()));
  char value[16] = {};
  const double extrapolation = form.extrapolation();
  // A complex number begins with its real part.
  pfrt_dtype component = form.dtype();
  if (component == PFRT_DTYPE_COMPLEX64) component = PFRT_DTYPE_FLOAT32;
  if (component == PFRT_DTYPE_COMPLEX128) component = PFRT_DTYPE_FLOAT64;
  store_block(component, &extrapolation, 1, value);

  const size_t outer = plan.axes.size() - 1;
  const ResizePlan::Axis& line = plan.axes.back();
  const int64_t bytes = plan.inner * size;
  const int64_t rows = form.out_elements() / plan.inner / line.out;
  // A task is some positions of a row or some rows.
  const int64_t positions = std::clamp<int64_t>(kTaskBytes / bytes, 1, line.out);
  const int64_t tasks = (line.out + positions - 1) / positions;
  const int64_t items = std::max<int64_t>(kTaskBytes / (positions * bytes), 1);
  const auto start = [&](int64_t item) {
    return (item / tasks * line.out + item % tasks * positions) * plan.inner;
  };
  run.blocks(rows * tasks, items, [&](int64_t begin, int64_t end) {
    int64_t at[kMostAxes], from_before = -1;  // of the row before, which may be the same
    for (int64_t item = begin; item < end; ++item) {
      const int64_t row = item / tasks, first = item % tasks * positions;
      const int64_t n = std::min(positions, line.out - first);
      char* const y = run.output<char>(0) + (row * line.out + first) * bytes;
      plan.locate(row, outer, at);
      if (plan.outside(at, outer)) {
        fill(y, value, n * plan.inner, size);
        from_before = -1;
        continue;
      }
      int64_t from = 0;
      for (size_t i = 0; i < outer; ++i) {
        const ResizePlan::Axis& axis = plan.axes[i];
        const size_t c = static_cast<size_t>(at[i]);
        from += (axis.taps.count == 0 ? at[i] : axis.taps.index[c]) * axis.stride;
      }
      if (from == from_before && n == line.out) {
        std::memcpy(y, y - n * bytes, static_cast<size_t>(n * bytes));
        continue;
      }
      from_before = from;
      gather(y, run.input<char>(0) + from * size, &line.taps.index[static_cast<size_t>(first)], n,
             bytes, line.in);
      if (line.taps.outside.empty()) continue;
      for (int64_t j = 0; j < n; ++j)
        if (line.taps.outside[static_cast<size_t>(first + j)] != 0)
          fill(y + j * bytes, value, plan.inner, size);
    }
    run.apply_epilogue(start(begin), start(end));
  });
}

}  // namespace pfrt::cpu
