// SPDX-License-Identifier: Apache-2.0
//
// Sets of element types, as rows name what they take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "pyflame_rt/types.h"

namespace pfrt::cpu {

// A set of element types.
class Types {
 public:
  constexpr Types() = default;
  constexpr Types(std::initializer_list<uint32_t> dtypes) {
    for (uint32_t d : dtypes) bits_ |= uint64_t{1} << d;
  }
  constexpr bool has(pfrt_dtype dtype) const { return dtype < 64 && (bits_ >> dtype & 1) != 0; }
  friend constexpr Types operator|(Types a, Types b) {
    a.bits_ |= b.bits_;
    return a;
  }
  // "float32 float64"
  std::string text() const;

 private:
  uint64_t bits_ = 0;
};

inline constexpr Types kFloat32{PFRT_DTYPE_FLOAT32};
// Floats of 16 and 32 bits: what is computed in float32.
inline constexpr Types kFloatsTo32{PFRT_DTYPE_FLOAT32, PFRT_DTYPE_FLOAT16, PFRT_DTYPE_BFLOAT16};
inline constexpr Types kFloats{PFRT_DTYPE_FLOAT32, PFRT_DTYPE_FLOAT64, PFRT_DTYPE_FLOAT16,
                               PFRT_DTYPE_BFLOAT16};
// Types that may have epilogues: a row with one calls Run::apply_epilogue for outputs of these
// types.
inline constexpr Types kEpilogueTypes =
    kFloatsTo32 | Types{PFRT_DTYPE_INT32, PFRT_DTYPE_INT8, PFRT_DTYPE_UINT8};
// The 8-bit floats that have a sign, as the standard's "all floats" knows them.
inline constexpr Types kFloat8{PFRT_DTYPE_FLOAT8E4M3FN, PFRT_DTYPE_FLOAT8E4M3FNUZ,
                               PFRT_DTYPE_FLOAT8E5M2, PFRT_DTYPE_FLOAT8E5M2FNUZ};
inline constexpr Types kSignedInts{PFRT_DTYPE_INT8, PFRT_DTYPE_INT16, PFRT_DTYPE_INT32,
                                   PFRT_DTYPE_INT64};
inline constexpr Types kUnsignedInts{PFRT_DTYPE_UINT8, PFRT_DTYPE_UINT16, PFRT_DTYPE_UINT32,
                                     PFRT_DTYPE_UINT64};
inline constexpr Types kInts = kSignedInts | kUnsignedInts;
inline constexpr Types kNumbers = kFloats | kInts;
inline constexpr Types kBool{PFRT_DTYPE_BOOL};
inline constexpr Types kIndices{PFRT_DTYPE_INT32, PFRT_DTYPE_INT64};
// Everything whose elements are whole bytes: for kernels that only move data.
inline constexpr Types kMovable =
    kNumbers | kBool | Types{PFRT_DTYPE_COMPLEX64,    PFRT_DTYPE_COMPLEX128,
                             PFRT_DTYPE_FLOAT8E4M3FN, PFRT_DTYPE_FLOAT8E4M3FNUZ,
                             PFRT_DTYPE_FLOAT8E5M2,   PFRT_DTYPE_FLOAT8E5M2FNUZ,
                             PFRT_DTYPE_FLOAT8E8M0};
// Several elements a byte in memory.
inline constexpr Types kSubByte{PFRT_DTYPE_UINT4, PFRT_DTYPE_INT4, PFRT_DTYPE_FLOAT4E2M1,
                                PFRT_DTYPE_UINT2, PFRT_DTYPE_INT2};
// Everything but strings: for kernels that move data of stored_size().
inline constexpr Types kElements = kMovable | kSubByte;
// Bytes of an element as kernels see it. Elements of sub-byte types come one to a byte (integers
// with their sign, floats as their bits), unless the row has kSubByteAsIs.
size_t stored_size(pfrt_dtype dtype);

}  // namespace pfrt::cpu
