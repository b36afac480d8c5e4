// SPDX-License-Identifier: Apache-2.0
//
// Blocks of elements to and from the types kernels compute in: float for float32 and what is
// shorter, double for float64, int64_t for signed integers and bool, uint64_t for unsigned
// integers. A kernel is then one loop an operator and compute type instead of one an element type.
// Elements of sub-byte types are a byte each (types.h). Pure functions over the caller's memory;
// thread-safe.
//
// Conversions: to a shorter float rounds to nearest even, once, and saturates at 8 bits and fewer;
// between integers wraps around; a float to an integer truncates and saturates (at fewer than 8
// bits it wraps around), NaN giving 0; to bool is "not zero". Complex types load as 0 and store
// nothing; rows keep them out.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/base/small_float.h"
#include "pyflame_rt/types.h"

namespace pfrt::cpu {

// The conversion of one value, as above.
template <typename To, typename From>
To converted(From value) {
  if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    // Both bounds are powers of two (or 0), exact in From; the upper one is the first value too
    // large.
    constexpr From kLow = static_cast<From>(std::numeric_limits<To>::min());
    constexpr To kHalf = std::numeric_limits<To>::max() / 2 + 1;
    constexpr From kHigh = static_cast<From>(kHalf) * From{2};
    if (value >= kHigh) return std::numeric_limits<To>::max();
    if (value <= kLow) return std::numeric_limits<To>::min();
    return value == value ? static_cast<To>(value) : To{0};
  } else {
    return static_cast<To>(value);
  }
}

// Elements of a block: four arrays of it stay in the first-level cache.
inline constexpr int64_t kBlock = 1024;

// Loads |n| elements at |src|, which are |dtype|, as T. T is float, double, int64_t or uint64_t,
// here and below.
template <typename T>
void load_block(pfrt_dtype dtype, const void* src, int64_t n, T* dst);
template <typename T>
void store_block(pfrt_dtype dtype, const T* src, int64_t n, void* dst);

extern template void load_block(pfrt_dtype, const void*, int64_t, float*);
extern template void load_block(pfrt_dtype, const void*, int64_t, double*);
extern template void load_block(pfrt_dtype, const void*, int64_t, int64_t*);
extern template void load_block(pfrt_dtype, const void*, int64_t, uint64_t*);
extern template void store_block(pfrt_dtype, const float*, int64_t, void*);
extern template void store_block(pfrt_dtype, const double*, int64_t, void*);
extern template void store_block(pfrt_dtype, const int64_t*, int64_t, void*);
extern template void store_block(pfrt_dtype, const uint64_t*, int64_t, void*);

// Does store_block to an 8- or 4-bit float, but saturates and rounds as the arguments say.
template <typename T>
void store_small_floats(pfrt_dtype dtype, const T* src, int64_t n, void* dst, bool saturate,
                        PowerRounding rounding);

extern template void store_small_floats(pfrt_dtype, const float*, int64_t, void*, bool,
                                        PowerRounding);
extern template void store_small_floats(pfrt_dtype, const double*, int64_t, void*, bool,
                                        PowerRounding);
extern template void store_small_floats(pfrt_dtype, const int64_t*, int64_t, void*, bool,
                                        PowerRounding);
extern template void store_small_floats(pfrt_dtype, const uint64_t*, int64_t, void*, bool,
                                        PowerRounding);

// The element type whose elements are T in memory: its blocks are used in place.
template <typename T>
inline constexpr pfrt_dtype kDtypeOf = std::is_same_v<T, float>     ? PFRT_DTYPE_FLOAT32
                                       : std::is_same_v<T, double>  ? PFRT_DTYPE_FLOAT64
                                       : std::is_same_v<T, int64_t> ? PFRT_DTYPE_INT64
                                                                    : PFRT_DTYPE_UINT64;

// Address of element |i| of an array of |dtype|.
const void* element(pfrt_dtype dtype, const void* base, int64_t i);
void* element(pfrt_dtype dtype, void* base, int64_t i);

// Elements [first, first + n) of |base| as T: in place where that is their type, else converted
// into |block|.
template <typename T>
const T* read_block(pfrt_dtype dtype, const void* base, int64_t first, int64_t n, T* block) {
  const void* src = element(dtype, base, first);
  if (dtype == kDtypeOf<T>) return static_cast<const T*>(src);
  load_block(dtype, src, n, block);
  return block;
}

// Address at which a kernel computes elements from |first| on of an output: in place or in |block|.
// write_block completes the output.
template <typename T>
T* place_block(pfrt_dtype dtype, void* base, int64_t first, T* block) {
  return dtype == kDtypeOf<T> ? static_cast<T*>(base) + first : block;
}
template <typename T>
void write_block(pfrt_dtype dtype, void* base, int64_t first, int64_t n, const T* placed) {
  void* dst = element(dtype, base, first);
  if (dst != placed) store_block(dtype, placed, n, dst);
}

// A single element as T; 0 when |src| is null.
template <typename T>
T load_scalar(pfrt_dtype dtype, const void* src) {
  T value = 0;
  if (src) load_block(dtype, src, 1, &value);
  return value;
}

// fn(T{}) with the compute type of |dtype|.
template <typename Fn>
auto with_compute_type(pfrt_dtype dtype, Fn&& fn) {
  switch (dtype) {
    case PFRT_DTYPE_FLOAT64:
      return fn(double{});
    case PFRT_DTYPE_FLOAT32:
    case PFRT_DTYPE_FLOAT16:
    case PFRT_DTYPE_BFLOAT16:
    case PFRT_DTYPE_FLOAT8E4M3FN:
    case PFRT_DTYPE_FLOAT8E4M3FNUZ:
    case PFRT_DTYPE_FLOAT8E5M2:
    case PFRT_DTYPE_FLOAT8E5M2FNUZ:
    case PFRT_DTYPE_FLOAT8E8M0:
    case PFRT_DTYPE_FLOAT4E2M1:
      return fn(float{});
    case PFRT_DTYPE_UINT2:
    case PFRT_DTYPE_UINT4:
    case PFRT_DTYPE_UINT8:
    case PFRT_DTYPE_UINT16:
    case PFRT_DTYPE_UINT32:
    case PFRT_DTYPE_UINT64:
      return fn(uint64_t{});
    default:
      return fn(int64_t{});
  }
}

// The compute types an operator is made for.
enum class On : uint8_t { kFloat, kInteger, kAny };

template <On on, typename T>
inline constexpr bool kMadeFor = on == On::kAny ||
                                 (on == On::kFloat) == std::is_floating_point_v<T>;

// The least and greatest element of |dtype| (infinities for floats) as T, which must be the compute
// type or wider.
template <typename T>
T lowest_of(pfrt_dtype dtype);
template <typename T>
T highest_of(pfrt_dtype dtype);

extern template float lowest_of(pfrt_dtype);
extern template double lowest_of(pfrt_dtype);
extern template int64_t lowest_of(pfrt_dtype);
extern template uint64_t lowest_of(pfrt_dtype);
extern template float highest_of(pfrt_dtype);
extern template double highest_of(pfrt_dtype);
extern template int64_t highest_of(pfrt_dtype);
extern template uint64_t highest_of(pfrt_dtype);

}  // namespace pfrt::cpu
