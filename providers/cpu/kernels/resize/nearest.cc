// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "providers/cpu/elements/convert.h"
#include "providers/cpu/isa/isa.h"
#include "providers/cpu/isa/target.h"
#include "providers/cpu/kernels/resize/rows.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kTaskBytes = 1 << 15;

// Copies |n| elements of kBytes bytes, each from |index| * kBytes on of |x|.
template <size_t kBytes>
void gather_fixed(char* y, const char* x, const int64_t* index, int64_t n) {
  for (int64_t j = 0; j < n; ++j)
    std::memcpy(y + j * static_cast<int64_t>(kBytes), x + index[j] * static_cast<int64_t>(kBytes),
                kBytes);
}

// Distances of 4 elements from |base|.
__attribute__((target("avx2"), always_inline)) inline __m256i distances(const int64_t* index,
                                                                        __m256i base) {
  return _mm256_sub_epi64(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(index)), base);
}

// A line of elements of 4 bytes as permutations, made once for all lines of a task: 8 outputs that
// come from 8 contiguous inputs are a permutation of these. The last permutation may overlap the
// one before. Other outputs are gathered one by one.
class NearLine {
 public:
  static constexpr int64_t kLanes = 8, kMost = kTaskBytes / int64_t{sizeof(float)};  // outputs

  // Makes the line for |n| outputs, each element |index| of |count|; returns false for too few.
  // |index| stays.
  __attribute__((target("avx2"))) bool make(const int64_t* index, int64_t n, int64_t count) {
    if (n < kLanes || n > kMost || count < kLanes) return false;
    index_ = index;
    const __m256i even = _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6);
    const __m256i far = _mm256_set1_epi64x(~(kLanes - 1));
    n_ = n;
    for (int64_t i = 0; i < n; i += kLanes) {
      const int64_t j = std::min(i, n - kLanes);
      const int64_t first = std::min({index[j], index[j + kLanes - 1], count - kLanes});
      const __m256i base = _mm256_set1_epi64x(first);
      const __m256i low = distances(index + j, base), high = distances(index + j + 4, base);
      const bool near = _mm256_testz_si256(_mm256_or_si256(low, high), far) != 0;
      first_[i / kLanes] = near ? first : kFar;
      _mm256_store_si256(reinterpret_cast<__m256i*>(order_[i / kLanes]),
                         _mm256_blend_epi32(_mm256_permutevar8x32_epi32(low, even),
                                            _mm256_permutevar8x32_epi32(high, even), 0xf0));
    }
    return true;
  }

  __attribute__((target("avx2"))) void gather(char* y, const char* x) const {
    constexpr int64_t kBytes = 4;
    for (int64_t i = 0; i < n_; i += kLanes) {
      const int64_t j = std::min(i, n_ - kLanes), first = first_[i / kLanes];
      if (first == kFar) {
        gather_fixed<kBytes>(y + j * kBytes, x, index_ + j, kLanes);
        continue;
      }
      const __m256i order = _mm256_load_si256(reinterpret_cast<const __m256i*>(order_[i / kLanes]));
      const __m256i in = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + first * kBytes));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(y + j * kBytes),
                          _mm256_permutevar8x32_epi32(in, order));
    }
  }

 private:
  static constexpr int64_t kFar = -1;
  const int64_t* index_ = nullptr;
  int64_t n_ = 0;
  int64_t first_[kMost / kLanes];
  alignas(32) int32_t order_[kMost / kLanes][kLanes];
};

// A line of bytes as permutations of 16 at a time.
class NearBytes {
 public:
  static constexpr int64_t kLanes = 16, kMost = 4096;  // outputs

  bool make(const int64_t* index, int64_t n, int64_t count) {
    if (n < kLanes || n > kMost || count < kLanes) return false;
    index_ = index;
    n_ = n;
    for (int64_t i = 0; i < n; i += kLanes) {
      const int64_t j = std::min(i, n - kLanes);
      const int64_t first = std::min({index[j], index[j + kLanes - 1], count - kLanes});
      bool near = true;
      for (int64_t k = 0; k < kLanes; ++k) {
        const int64_t distance = index[j + k] - first;
        near &= distance >= 0 && distance < kLanes;
        order_[i / kLanes][k] = static_cast<uint8_t>(distance);
      }
      first_[i / kLanes] = near ? first : kFar;
    }
    return true;
  }

  PFRT_AVX2 void gather(char* y, const char* x) const {
    for (int64_t i = 0; i < n_; i += kLanes) {
      const int64_t j = std::min(i, n_ - kLanes), first = first_[i / kLanes];
      if (first == kFar) {
        gather_fixed<1>(y + j, x, index_ + j, kLanes);
        continue;
      }
      const __m128i order = _mm_load_si128(reinterpret_cast<const __m128i*>(order_[i / kLanes]));
      const __m128i in = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x + first));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(y + j), _mm_shuffle_epi8(in, order));
    }
  }

 private:
  static constexpr int64_t kFar = -1;
  const int64_t* index_ = nullptr;
  int64_t n_ = 0;
  int64_t first_[kMost / kLanes];
  alignas(16) uint8_t order_[kMost / kLanes][kLanes];
};

// Copies |n| elements of |bytes| bytes, each from |index| * |bytes| on of |x|.
void gather(char* y, const char* x, const int64_t* index, int64_t n, int64_t bytes) {
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

// Fills |n| elements with |value|.
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
  const auto offset = [&](size_t i, int64_t c) {
    const ResizePlan::Axis& axis = plan.axes[i];
    return (axis.taps.count == 0 ? c : axis.taps.index[static_cast<size_t>(c)]) * axis.stride;
  };
  run.blocks(rows * tasks, items, [&](int64_t begin, int64_t end) {
    NearLine near;
    NearBytes near_bytes;
    const bool vectors = (bytes == 4 || bytes == 1) && isa() >= Isa::kAvx2;
    const auto make_near = [&](const int64_t* index, int64_t n) {
      return bytes == 4 ? near.make(index, n, line.in) : near_bytes.make(index, n, line.in);
    };
    bool is_near = vectors && tasks == 1 && make_near(line.taps.index.data(), line.out);
    int64_t at[kMostAxes], located = -1, from_before = -1;  // of the row before
    int64_t plane = 0;  // beginning of the pixels of all rows that differ in their last coordinate
    for (int64_t item = begin; item < end; ++item) {
      const int64_t row = item / tasks, first = item % tasks * positions;
      const int64_t n = std::min(positions, line.out - first);
      char* const y = run.output<char>(0) + (row * line.out + first) * bytes;
      int64_t from = 0;
      if (outer > 0) {
        int64_t& last = at[outer - 1];
        if (located >= 0 && row == located + 1 && last + 1 < plan.axes[outer - 1].out) {
          ++last;
        } else if (row != located) {
          plan.locate(row, outer, at);
          plane = 0;
          for (size_t i = 0; i + 1 < outer; ++i) plane += offset(i, at[i]);
        }
        located = row;
        from = plane + offset(outer - 1, last);
      }
      if (plan.outside(at, outer)) {
        fill(y, value, n * plan.inner, size);
        from_before = -1;
        continue;
      }
      if (from == from_before && n == line.out) {
        std::memcpy(y, y - n * bytes, static_cast<size_t>(n * bytes));
        continue;
      }
      from_before = from;
      const char* const x = run.input<char>(0) + from * size;
      const int64_t* const index = &line.taps.index[static_cast<size_t>(first)];
      if (vectors && tasks > 1) is_near = make_near(index, n);
      if (is_near)
        bytes == 4 ? near.gather(y, x) : near_bytes.gather(y, x);
      else
        gather(y, x, index, n, bytes);
      if (line.taps.outside.empty()) continue;
      for (int64_t j = 0; j < n; ++j)
        if (line.taps.outside[static_cast<size_t>(first + j)] != 0)
          fill(y + j * bytes, value, plan.inner, size);
    }
    run.apply_epilogue(start(begin), start(end));
  });
}

}  // namespace pfrt::cpu
