// SPDX-License-Identifier: Apache-2.0
//
// Rounding of quantized results, and parameters (scales, zero points) read when a kernel runs. Pure
// functions; thread-safe.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include "providers/cpu/elements/load.h"
#include "providers/cpu/kernel/run.h"

namespace pfrt::cpu {

// The nearest whole number, ties to even, of a value within +-2^22 (others are clamped to that; NaN
// stays).
inline float round_even(float x) {
  constexpr float kLimit = 0x1p22f, kMagic = 0x1.8p23f;
  x = x < -kLimit ? -kLimit : x > kLimit ? kLimit : x;
  return x + kMagic - kMagic;
}

inline double round_even(double x) { return std::nearbyint(x); }

// A scale or zero point input: where, its type and its size, known when the kernel is made.
class Parameter {
 public:
  Parameter(const SnapshotNode& node, uint32_t i)
      : dtype_(node.input_dtype(i)),
        input_(i),
        count_(node.has_input(i) ? node.input_elements(i) : 0) {}

  bool present() const { return count_ > 0; }
  // Returns |size| values: value i is element i modulo the count; |fallback| where the input is
  // absent or empty.
  template <typename T>
  std::vector<T> read(const Run& run, int64_t size, T fallback) const;
  // SHAPE_MISMATCH unless the input is absent, one element, or |size| is a multiple of its count.
  Status check(std::string_view name, int64_t size) const {
    if (count_ <= 1 || size % count_ == 0) return Status();
    return error(Code::kSHAPE_MISMATCH, name, " must hold 1 or ", size, " elements, found ",
                 count_);
  }

 private:
  pfrt_dtype dtype_;
  uint32_t input_;
  int64_t count_;
};

template <typename T>
std::vector<T> Parameter::read(const Run& run, int64_t size, T fallback) const {
  std::vector<T> values(static_cast<size_t>(std::max<int64_t>(size, 1)), fallback);
  if (count_ <= 0) return values;
  const size_t direct = std::min(static_cast<size_t>(count_), values.size());
  load_fn<T>(dtype_)(values.data(), run.input(input_), 0, 1, static_cast<int64_t>(direct));
  if (direct == 1) std::fill(values.begin() + 1, values.end(), values[0]);
  for (size_t i = direct; direct > 1 && i < values.size(); ++i) values[i] = values[i - direct];
  return values;
}

// line[j] = sums[j] (as int32) * scale[j * scale_stride] rounded, plus |zero|: ready to be stored
// saturated.
void requantize(float* line, const uint32_t* sums, const float* scale, int64_t scale_stride,
                float zero, int64_t n);

// Rounds sums to bytes: the nearest whole number, ties to even, of sum * scale, plus |zero|,
// saturated. Where scales are finite the bytes are those of requantize, stored; they are equal on
// every instruction set.
struct RequantizeFns {
  static constexpr int64_t kLine = 16;

  // Rounds |n| sums with a scale each.
  void (*columns)(const int32_t* sums, const float* scales, int32_t zero, int64_t n, uint8_t* out);
  // Rounds |n| lines of 16 sums, |stride| apart, with 16 scales, to lines of 16 bytes.
  void (*lines)(const int32_t* lines, int64_t stride, const float* scales, int32_t zero, int64_t n,
                uint8_t* out, int64_t out_stride);
};
RequantizeFns requantize_fns(pfrt_dtype dtype);  // int8 or uint8

}  // namespace pfrt::cpu
