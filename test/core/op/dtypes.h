// SPDX-License-Identifier: Apache-2.0
//
// Short names of element types, for tables of cases.
#pragma once

#include "core/ir/graph.h"

namespace pfrt {

inline constexpr pfrt_dtype kFloat = PFRT_DTYPE_FLOAT32, kBfloat16 = PFRT_DTYPE_BFLOAT16,
                            kFloat8 = PFRT_DTYPE_FLOAT8E4M3FN, kByte = PFRT_DTYPE_UINT8,
                            kSigned = PFRT_DTYPE_INT8, kInt32 = PFRT_DTYPE_INT32,
                            kInt64 = PFRT_DTYPE_INT64, kText = PFRT_DTYPE_STRING;

// An input of a node; without a type it is absent.
struct In {
  pfrt_dtype dtype = PFRT_DTYPE_UNSET;
  Shape shape;
};

}  // namespace pfrt
