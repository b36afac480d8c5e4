// SPDX-License-Identifier: Apache-2.0
//
// Facts about element types, from the one table in types.h. Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "pyflame_rt/types.h"

namespace pfrt {

bool dtype_known(pfrt_dtype dtype);
// "float32"; "undefined" for 0; "unknown" for numbers outside the table.
std::string_view dtype_name(pfrt_dtype dtype);
// ONNX's spelling, such as "float".
std::string_view dtype_onnx_name(pfrt_dtype dtype);
// Returns 0 for an unknown name.
pfrt_dtype dtype_from_name(std::string_view name);
// Bits of one element in a tensor; a string counts as sizeof(pfrt_string) * 8; 0 when unknown.
uint32_t dtype_bits(pfrt_dtype dtype);
// Bytes of one element; 0 for sub-byte and unknown types.
size_t dtype_size(pfrt_dtype dtype);
// float16, bfloat16, float32, float64 and the 8- and 4-bit floats.
bool dtype_is_float(pfrt_dtype dtype);
bool dtype_is_integer(pfrt_dtype dtype);  // signed and unsigned, sub-byte included; not bool
bool dtype_is_signed(pfrt_dtype dtype);   // signed integers and floats

// Number of elements of |dims|; -1 when a dimension is negative or the product of those that are
// not zero does not fit 62 bits (strides are such products, also in an empty tensor).
int64_t element_count(const int64_t* dims, size_t rank);
// Bytes of |count| packed elements; UINT64_MAX on overflow or an unknown type.
uint64_t tensor_bytes(pfrt_dtype dtype, int64_t count);

}  // namespace pfrt
