// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/elements/convert.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/base/dtype.h"
#include "core/base/half.h"
#include "core/base/small_float.h"
#include "providers/cpu/elements/float_16bit.h"
#include "providers/cpu/kernel/types.h"

namespace pfrt::cpu {
namespace {

// Rounded to odd, so that rounding the result to a 16-bit float gives what rounding |value| itself
// would.
float narrowed(double value) {
  const float nearest = static_cast<float>(value);
  const uint32_t bits = std::bit_cast<uint32_t>(nearest);
  if (static_cast<double>(nearest) == value || std::isnan(value) || (bits & 1) != 0) return nearest;
  const bool went_up = std::fabs(static_cast<double>(nearest)) > std::fabs(value);
  return std::bit_cast<float>(went_up ? bits - 1 : bits + 1);
}
float narrowed(float value) { return value; }
float narrowed(int64_t value) { return narrowed(static_cast<double>(value)); }
float narrowed(uint64_t value) { return narrowed(static_cast<double>(value)); }

template <typename Element, typename T>
void load_as(const void* src, int64_t n, T* dst) {
  const Element* x = static_cast<const Element*>(src);
  for (int64_t i = 0; i < n; ++i) dst[i] = converted<T>(x[i]);
}

template <typename Element, typename T>
void store_as(const T* src, int64_t n, void* dst) {
  Element* y = static_cast<Element*>(dst);
  for (int64_t i = 0; i < n; ++i) y[i] = converted<Element>(src[i]);
}

// The low |bits| of the number, with their sign where Element has one.
template <typename Element, int bits, typename T>
void store_sub_byte(const T* src, int64_t n, void* dst) {
  constexpr int kUnused = 8 - bits;
  Element* y = static_cast<Element*>(dst);
  for (int64_t i = 0; i < n; ++i) {
    const auto low = static_cast<uint8_t>(static_cast<uint64_t>(converted<int64_t>(src[i])));
    y[i] =
        static_cast<Element>(static_cast<Element>(static_cast<uint8_t>(low << kUnused)) >> kUnused);
  }
}

template <typename T>
void load_small_floats(pfrt_dtype dtype, const void* src, int64_t n, T* dst) {
  const uint8_t* x = static_cast<const uint8_t*>(src);
  for (int64_t i = 0; i < n; ++i) dst[i] = converted<T>(small_float_to_float(dtype, x[i]));
}

}  // namespace

template <typename T>
void load_block(pfrt_dtype dtype, const void* src, int64_t n, T* dst) {
  if constexpr (std::is_same_v<T, double>)
    if (const WidenFn widen = widen_fn(dtype)) {
      constexpr int64_t kWide = 64;
      float line[kWide];
      for (int64_t i = 0; i < n; i += kWide) {
        const int64_t count = std::min(kWide, n - i);
        widen(static_cast<const uint16_t*>(src) + i, line, count);
        for (int64_t j = 0; j < count; ++j) dst[i + j] = static_cast<double>(line[j]);
      }
      return;
    }
  if constexpr (std::is_same_v<T, float>)
    if (const WidenFn widen = widen_fn(dtype))
      return widen(static_cast<const uint16_t*>(src), dst, n);
  switch (dtype) {
    case PFRT_DTYPE_FLOAT32:
      return load_as<float>(src, n, dst);
    case PFRT_DTYPE_FLOAT64:
      return load_as<double>(src, n, dst);
    case PFRT_DTYPE_INT8:
      return load_as<int8_t>(src, n, dst);
    case PFRT_DTYPE_INT16:
      return load_as<int16_t>(src, n, dst);
    case PFRT_DTYPE_INT32:
      return load_as<int32_t>(src, n, dst);
    case PFRT_DTYPE_INT64:
      return load_as<int64_t>(src, n, dst);
    case PFRT_DTYPE_UINT8:
      return load_as<uint8_t>(src, n, dst);
    case PFRT_DTYPE_UINT16:
      return load_as<uint16_t>(src, n, dst);
    case PFRT_DTYPE_UINT32:
      return load_as<uint32_t>(src, n, dst);
    case PFRT_DTYPE_UINT64:
      return load_as<uint64_t>(src, n, dst);
    case PFRT_DTYPE_BOOL: {
      const uint8_t* x = static_cast<const uint8_t*>(src);
      for (int64_t i = 0; i < n; ++i) dst[i] = static_cast<T>(x[i] != 0);
      return;
    }
    case PFRT_DTYPE_FLOAT16: {
      const uint16_t* x = static_cast<const uint16_t*>(src);
      for (int64_t i = 0; i < n; ++i) dst[i] = converted<T>(float16_to_float(x[i]));
      return;
    }
    case PFRT_DTYPE_BFLOAT16: {
      const uint16_t* x = static_cast<const uint16_t*>(src);
      for (int64_t i = 0; i < n; ++i) dst[i] = converted<T>(bfloat16_to_float(x[i]));
      return;
    }
    case PFRT_DTYPE_INT2:
    case PFRT_DTYPE_INT4:
      return load_as<int8_t>(src, n, dst);
    case PFRT_DTYPE_UINT2:
    case PFRT_DTYPE_UINT4:
      return load_as<uint8_t>(src, n, dst);
    default:
      if (is_small_float(dtype)) return load_small_floats(dtype, src, n, dst);
      std::fill_n(dst, n, T{0});
  }
}

template <typename T>
void store_block(pfrt_dtype dtype, const T* src, int64_t n, void* dst) {
  if constexpr (std::is_same_v<T, float>)
    if (const NarrowFn narrow = narrow_fn(dtype))
      return narrow(src, static_cast<uint16_t*>(dst), n);
  switch (dtype) {
    case PFRT_DTYPE_FLOAT32:
      return store_as<float>(src, n, dst);
    case PFRT_DTYPE_FLOAT64:
      return store_as<double>(src, n, dst);
    case PFRT_DTYPE_INT8:
      return store_as<int8_t>(src, n, dst);
    case PFRT_DTYPE_INT16:
      return store_as<int16_t>(src, n, dst);
    case PFRT_DTYPE_INT32:
      return store_as<int32_t>(src, n, dst);
    case PFRT_DTYPE_INT64:
      return store_as<int64_t>(src, n, dst);
    case PFRT_DTYPE_UINT8:
      return store_as<uint8_t>(src, n, dst);
    case PFRT_DTYPE_UINT16:
      return store_as<uint16_t>(src, n, dst);
    case PFRT_DTYPE_UINT32:
      return store_as<uint32_t>(src, n, dst);
    case PFRT_DTYPE_UINT64:
      return store_as<uint64_t>(src, n, dst);
    case PFRT_DTYPE_BOOL: {
      uint8_t* y = static_cast<uint8_t*>(dst);
      for (int64_t i = 0; i < n; ++i) y[i] = src[i] != T{0};
      return;
    }
    case PFRT_DTYPE_FLOAT16: {
      uint16_t* y = static_cast<uint16_t*>(dst);
      for (int64_t i = 0; i < n; ++i) y[i] = float_to_float16(narrowed(src[i]));
      return;
    }
    case PFRT_DTYPE_BFLOAT16: {
      uint16_t* y = static_cast<uint16_t*>(dst);
      for (int64_t i = 0; i < n; ++i) y[i] = float_to_bfloat16(narrowed(src[i]));
      return;
    }
    case PFRT_DTYPE_INT2:
      return store_sub_byte<int8_t, 2>(src, n, dst);
    case PFRT_DTYPE_INT4:
      return store_sub_byte<int8_t, 4>(src, n, dst);
    case PFRT_DTYPE_UINT2:
      return store_sub_byte<uint8_t, 2>(src, n, dst);
    case PFRT_DTYPE_UINT4:
      return store_sub_byte<uint8_t, 4>(src, n, dst);
    default:
      if (is_small_float(dtype)) store_small_floats(dtype, src, n, dst, true, PowerRounding::kUp);
  }
}

template <typename T>
void store_small_floats(pfrt_dtype dtype, const T* src, int64_t n, void* dst, bool saturate,
                        PowerRounding rounding) {
  uint8_t* y = static_cast<uint8_t*>(dst);
  for (int64_t i = 0; i < n; ++i)
    y[i] = float_to_small_float(dtype, narrowed(src[i]), saturate, rounding);
}

template void store_small_floats(pfrt_dtype, const float*, int64_t, void*, bool, PowerRounding);
template void store_small_floats(pfrt_dtype, const double*, int64_t, void*, bool, PowerRounding);
template void store_small_floats(pfrt_dtype, const int64_t*, int64_t, void*, bool, PowerRounding);
template void store_small_floats(pfrt_dtype, const uint64_t*, int64_t, void*, bool, PowerRounding);

template void load_block(pfrt_dtype, const void*, int64_t, float*);
template void load_block(pfrt_dtype, const void*, int64_t, double*);
template void load_block(pfrt_dtype, const void*, int64_t, int64_t*);
template void load_block(pfrt_dtype, const void*, int64_t, uint64_t*);
template void store_block(pfrt_dtype, const float*, int64_t, void*);
template void store_block(pfrt_dtype, const double*, int64_t, void*);
template void store_block(pfrt_dtype, const int64_t*, int64_t, void*);
template void store_block(pfrt_dtype, const uint64_t*, int64_t, void*);

const void* element(pfrt_dtype dtype, const void* base, int64_t i) {
  return static_cast<const char*>(base) + i * static_cast<int64_t>(stored_size(dtype));
}
void* element(pfrt_dtype dtype, void* base, int64_t i) {
  return static_cast<char*>(base) + i * static_cast<int64_t>(stored_size(dtype));
}

namespace {

struct IntegerRange {
  int64_t low;
  uint64_t high;
};

IntegerRange integer_range(pfrt_dtype dtype) {
  if (dtype == PFRT_DTYPE_BOOL) return {0, 1};
  const uint32_t bits = dtype_bits(dtype);
  if (bits == 0 || bits > 64) return {0, 0};
  const uint64_t all = ~uint64_t{0} >> (64 - bits);
  if (!dtype_is_signed(dtype)) return {0, all};
  return {-1 - static_cast<int64_t>(all >> 1), all >> 1};
}

}  // namespace

template <typename T>
T lowest_of(pfrt_dtype dtype) {
  if constexpr (std::is_floating_point_v<T>)
    if (dtype_is_float(dtype)) return -std::numeric_limits<T>::infinity();
  return static_cast<T>(integer_range(dtype).low);
}

template <typename T>
T highest_of(pfrt_dtype dtype) {
  if constexpr (std::is_floating_point_v<T>)
    if (dtype_is_float(dtype)) return std::numeric_limits<T>::infinity();
  return static_cast<T>(integer_range(dtype).high);
}

template float lowest_of(pfrt_dtype);
template double lowest_of(pfrt_dtype);
template int64_t lowest_of(pfrt_dtype);
template uint64_t lowest_of(pfrt_dtype);
template float highest_of(pfrt_dtype);
template double highest_of(pfrt_dtype);
template int64_t highest_of(pfrt_dtype);
template uint64_t highest_of(pfrt_dtype);

}  // namespace pfrt::cpu
