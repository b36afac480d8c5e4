// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/elements/load.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "core/base/half.h"
#include "providers/cpu/elements/float_16bit.h"

namespace pfrt::cpu {
namespace {

struct Fp16 {
  uint16_t bits;
};
struct Brain {
  uint16_t bits;
};

template <typename E, typename T>
E narrow(T value) {
  if constexpr (std::is_same_v<E, Fp16>) {
    return Fp16{float_to_float16(static_cast<float>(value))};
  } else if constexpr (std::is_same_v<E, Brain>) {
    return Brain{float_to_bfloat16(static_cast<float>(value))};
  } else if constexpr (std::is_integral_v<E> && std::is_floating_point_v<T>) {
    // The bounds are powers of two (or one less, rounded up), so the comparisons are exact.
    constexpr T kLow = static_cast<T>(std::numeric_limits<E>::min());
    constexpr T kHigh = static_cast<T>(std::numeric_limits<E>::max());
    if (value >= kHigh) return std::numeric_limits<E>::max();
    if (value <= kLow) return std::numeric_limits<E>::min();
    return value != value ? E{0} : static_cast<E>(value);
  } else {
    return static_cast<E>(value);
  }
}

template <typename T, typename E>
void load(T* out, const void* base, int64_t offset, int64_t stride, int64_t n) {
  const E* in = static_cast<const E*>(base) + offset;
  if (stride == 1) {
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(in[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(in[i * stride]);
  }
}

template <typename T, typename E>
void store(void* base, int64_t offset, const T* in, int64_t n) {
  E* out = static_cast<E*>(base) + offset;
  for (int64_t i = 0; i < n; ++i) out[i] = narrow<E>(in[i]);
}

// Gathers a line where elements are not contiguous, since float_16bit.h converts contiguous ones.
template <pfrt_dtype dtype>
void load_16bit(float* out, const void* base, int64_t offset, int64_t stride, int64_t n) {
  const uint16_t* const in = static_cast<const uint16_t*>(base) + offset;
  const WidenFn widen_line = widen_fn(dtype);
  if (stride == 1) return widen_line(in, out, n);
  constexpr int64_t kGathered = 64;
  uint16_t line[kGathered];
  for (int64_t i = 0; i < n; i += kGathered) {
    const int64_t count = std::min(kGathered, n - i);
    for (int64_t j = 0; j < count; ++j) line[j] = in[(i + j) * stride];
    widen_line(line, out + i, count);
  }
}

template <pfrt_dtype dtype>
void load_16bit(double* out, const void* base, int64_t offset, int64_t stride, int64_t n) {
  constexpr int64_t kWide = 64;
  float line[kWide];
  for (int64_t i = 0; i < n; i += kWide) {
    const int64_t count = std::min(kWide, n - i);
    load_16bit<dtype>(line, base, offset + i * stride, stride, count);
    for (int64_t j = 0; j < count; ++j) out[i + j] = static_cast<double>(line[j]);
  }
}

template <pfrt_dtype dtype>
void store_16bit(void* base, int64_t offset, const float* in, int64_t n) {
  narrow_fn(dtype)(in, static_cast<uint16_t*>(base) + offset, n);
}

}  // namespace

template <typename T>
LoadFn<T> load_fn(pfrt_dtype dtype) {
  if constexpr (std::is_floating_point_v<T>) {
    if (dtype == PFRT_DTYPE_FLOAT16) return load_16bit<PFRT_DTYPE_FLOAT16>;
    if (dtype == PFRT_DTYPE_BFLOAT16) return load_16bit<PFRT_DTYPE_BFLOAT16>;
  }
  switch (dtype) {
    case PFRT_DTYPE_INT8:
      return load<T, int8_t>;
    case PFRT_DTYPE_UINT8:
    case PFRT_DTYPE_BOOL:
      return load<T, uint8_t>;
    case PFRT_DTYPE_INT16:
      return load<T, int16_t>;
    case PFRT_DTYPE_UINT16:
      return load<T, uint16_t>;
    case PFRT_DTYPE_INT32:
      return load<T, int32_t>;
    case PFRT_DTYPE_UINT32:
      return load<T, uint32_t>;
    case PFRT_DTYPE_INT64:
      return load<T, int64_t>;
    case PFRT_DTYPE_UINT64:
      return load<T, uint64_t>;
    default:
      break;
  }
  if constexpr (std::is_floating_point_v<T>) {
    switch (dtype) {
      case PFRT_DTYPE_FLOAT32:
        return load<T, float>;
      case PFRT_DTYPE_FLOAT64:
        return load<T, double>;
      default:
        break;
    }
  }
  return nullptr;
}

template <typename T>
StoreFn<T> store_fn(pfrt_dtype dtype) {
  if constexpr (std::is_same_v<T, float>) {
    if (dtype == PFRT_DTYPE_FLOAT16) return store_16bit<PFRT_DTYPE_FLOAT16>;
    if (dtype == PFRT_DTYPE_BFLOAT16) return store_16bit<PFRT_DTYPE_BFLOAT16>;
  }
  switch (dtype) {
    case PFRT_DTYPE_INT8:
      return store<T, int8_t>;
    case PFRT_DTYPE_UINT8:
      return store<T, uint8_t>;
    case PFRT_DTYPE_INT16:
      return store<T, int16_t>;
    case PFRT_DTYPE_UINT16:
      return store<T, uint16_t>;
    case PFRT_DTYPE_INT32:
      return store<T, int32_t>;
    case PFRT_DTYPE_UINT32:
      return store<T, uint32_t>;
    case PFRT_DTYPE_INT64:
      return store<T, int64_t>;
    case PFRT_DTYPE_UINT64:
      return store<T, uint64_t>;
    default:
      break;
  }
  if constexpr (std::is_floating_point_v<T>) {
    switch (dtype) {
      case PFRT_DTYPE_FLOAT32:
        return store<T, float>;
      case PFRT_DTYPE_FLOAT64:
        return store<T, double>;
      case PFRT_DTYPE_FLOAT16:
        return store<T, Fp16>;
      case PFRT_DTYPE_BFLOAT16:
        return store<T, Brain>;
      default:
        break;
    }
  }
  return nullptr;
}

Status need_types(const SnapshotNode& node, std::initializer_list<uint32_t> inputs, Types types) {
  for (const uint32_t i : inputs)
    if (node.has_input(i) && !types.has(node.input_dtype(i)))
      return error(Code::kDTYPE_MISMATCH, "input ", i, " is ", dtype_name(node.input_dtype(i)),
                   ", expected ", types.text());
  return {};
}

template LoadFn<float> load_fn(pfrt_dtype);
template LoadFn<double> load_fn(pfrt_dtype);
template LoadFn<uint32_t> load_fn(pfrt_dtype);
template LoadFn<uint64_t> load_fn(pfrt_dtype);
template StoreFn<float> store_fn(pfrt_dtype);
template StoreFn<double> store_fn(pfrt_dtype);
template StoreFn<uint32_t> store_fn(pfrt_dtype);
template StoreFn<uint64_t> store_fn(pfrt_dtype);

}  // namespace pfrt::cpu
