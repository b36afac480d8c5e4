// SPDX-License-Identifier: Apache-2.0
#include "core/verify/elements.h"

#include <cmath>
#include <limits>

#include "core/base/half.h"
#include "core/base/small_float.h"

namespace pfrt {
namespace {

// Calls |fn(at)| with a pointer to elements of the tensor's C++ type, where it has one.
template <typename Fn>
bool with_elements(const Tensor& t, Fn fn) {
  switch (t.dtype) {
    case PFRT_DTYPE_FLOAT32:
    case PFRT_DTYPE_COMPLEX64:
      fn(t.as<float>());
      return true;
    case PFRT_DTYPE_FLOAT64:
    case PFRT_DTYPE_COMPLEX128:
      fn(t.as<double>());
      return true;
    case PFRT_DTYPE_INT64:
      fn(t.as<int64_t>());
      return true;
    case PFRT_DTYPE_INT32:
      fn(t.as<int32_t>());
      return true;
    case PFRT_DTYPE_INT16:
      fn(t.as<int16_t>());
      return true;
    case PFRT_DTYPE_INT8:
      fn(t.as<int8_t>());
      return true;
    case PFRT_DTYPE_UINT64:
      fn(t.as<uint64_t>());
      return true;
    case PFRT_DTYPE_UINT32:
      fn(t.as<uint32_t>());
      return true;
    case PFRT_DTYPE_UINT16:
      fn(t.as<uint16_t>());
      return true;
    case PFRT_DTYPE_UINT8:
    case PFRT_DTYPE_BOOL:
      fn(t.as<uint8_t>());
      return true;
    default:
      return false;
  }
}

size_t numbers_in(const Tensor& t) {
  const bool pairs = t.dtype == PFRT_DTYPE_COMPLEX64 || t.dtype == PFRT_DTYPE_COMPLEX128;
  return static_cast<size_t>(t.count()) * (pairs ? 2 : 1);
}

double from_bits(pfrt_dtype dtype, uint32_t bits) {
  switch (dtype) {
    case PFRT_DTYPE_FLOAT16:
      return float16_to_float(static_cast<uint16_t>(bits));
    case PFRT_DTYPE_BFLOAT16:
      return bfloat16_to_float(static_cast<uint16_t>(bits));
    case PFRT_DTYPE_INT4:
      return bits < 8 ? bits : static_cast<int>(bits) - 16;
    case PFRT_DTYPE_INT2:
      return bits < 2 ? bits : static_cast<int>(bits) - 4;
    default:
      if (is_small_float(dtype)) return small_float_to_float(dtype, static_cast<uint8_t>(bits));
      return bits;
  }
}

uint32_t to_bits(pfrt_dtype dtype, double value) {
  const auto f = static_cast<float>(value);
  if (dtype == PFRT_DTYPE_FLOAT16) return float_to_float16(f);
  if (dtype == PFRT_DTYPE_BFLOAT16) return float_to_bfloat16(f);
  if (is_small_float(dtype)) return float_to_small_float(dtype, f);
  return static_cast<uint32_t>(static_cast<int>(value));
}

}  // namespace

std::vector<double> elements(const Tensor& tensor) {
  std::vector<double> out;
  if (tensor.dtype == PFRT_DTYPE_STRING || tensor.device()) return out;
  out.resize(numbers_in(tensor));
  if (with_elements(tensor, [&](const auto* at) {
        for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<double>(at[i]);
      }))
    return out;
  const uint32_t bits = dtype_bits(tensor.dtype), mask = bits < 32 ? (1u << bits) - 1 : ~0u;
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t bit = i * bits;
    const uint32_t word = bits == 16 ? tensor.as<uint16_t>()[i] : tensor.as<uint8_t>()[bit / 8];
    out[i] = from_bits(tensor.dtype, bits == 16 ? word : (word >> (bit % 8)) & mask);
  }
  return out;
}

void set_elements(Tensor& tensor, const std::vector<double>& values) {
  if (with_elements(tensor, [&](auto* at) {
        using T = std::remove_reference_t<decltype(*at)>;
        for (size_t i = 0; i < values.size(); ++i) at[i] = static_cast<T>(values[i]);
      }))
    return;
  const uint32_t bits = dtype_bits(tensor.dtype), mask = bits < 32 ? (1u << bits) - 1 : ~0u;
  for (size_t i = 0; i < values.size(); ++i) {
    const uint32_t word = to_bits(tensor.dtype, values[i]) & mask;
    if (bits == 16) {
      tensor.as<uint16_t>()[i] = static_cast<uint16_t>(word);
      continue;
    }
    const size_t bit = i * bits;
    uint8_t& byte = tensor.as<uint8_t>()[bit / 8];
    byte = static_cast<uint8_t>((byte & ~(mask << (bit % 8))) | (word << (bit % 8)));
  }
}

double rounding_of(pfrt_dtype dtype) {
  switch (dtype) {
    case PFRT_DTYPE_FLOAT64:
    case PFRT_DTYPE_COMPLEX128:
      return 0x1p-53;
    case PFRT_DTYPE_FLOAT32:
    case PFRT_DTYPE_COMPLEX64:
      return 0x1p-24;
    case PFRT_DTYPE_FLOAT16:
      return 0x1p-11;
    case PFRT_DTYPE_BFLOAT16:
      return 0x1p-8;
    case PFRT_DTYPE_FLOAT8E4M3FN:
    case PFRT_DTYPE_FLOAT8E4M3FNUZ:
      return 0x1p-4;
    case PFRT_DTYPE_FLOAT8E5M2:
    case PFRT_DTYPE_FLOAT8E5M2FNUZ:
      return 0x1p-3;
    case PFRT_DTYPE_FLOAT4E2M1:
      return 0x1p-2;
    case PFRT_DTYPE_FLOAT8E8M0:
      return 0x1p-1;
    default:
      return 0;
  }
}

}  // namespace pfrt
