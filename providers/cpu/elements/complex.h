// SPDX-License-Identifier: Apache-2.0
//
// Complex elements as kernels that need no complex arithmetic see them: two neighbouring numbers.
// Pure functions; thread-safe.
#pragma once

#include <cstdint>

#include "providers/cpu/kernel/types.h"

namespace pfrt::cpu {

inline constexpr Types kComplex{PFRT_DTYPE_COMPLEX64, PFRT_DTYPE_COMPLEX128};

// Numbers an element: 2 for complex types, else 1.
inline int64_t components_of(pfrt_dtype dtype) {
  return dtype == PFRT_DTYPE_COMPLEX64 || dtype == PFRT_DTYPE_COMPLEX128 ? 2 : 1;
}

// The type of such a number.
inline pfrt_dtype component_dtype(pfrt_dtype dtype) {
  if (dtype == PFRT_DTYPE_COMPLEX64) return PFRT_DTYPE_FLOAT32;
  return dtype == PFRT_DTYPE_COMPLEX128 ? pfrt_dtype{PFRT_DTYPE_FLOAT64} : dtype;
}

}  // namespace pfrt::cpu
