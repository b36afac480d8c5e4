// SPDX-License-Identifier: Apache-2.0
#include "core/base/dtype.h"

namespace pfrt {
namespace {

struct Row {
  uint32_t bits;
  std::string_view name;
  std::string_view onnx;
};

// Indexed by ONNX number.
constexpr Row kRows[] = {{0, "undefined", "undefined"},
#define PFRT_X(label, number, guide, width, text, spelt) {width, text, spelt},
                         PFRT_DTYPE_TABLE(PFRT_X)
#undef PFRT_X
};
constexpr pfrt_dtype kCount = sizeof kRows / sizeof kRows[0];

#define PFRT_X(label, number, guide, width, text, spelt) static_assert(kRows[number].name == text);
PFRT_DTYPE_TABLE(PFRT_X)
#undef PFRT_X

}  // namespace

bool dtype_known(pfrt_dtype dtype) { return dtype > 0 && dtype < kCount; }

std::string_view dtype_name(pfrt_dtype dtype) {
  return dtype < kCount ? kRows[dtype].name : "unknown";
}

std::string_view dtype_onnx_name(pfrt_dtype dtype) {
  return dtype < kCount ? kRows[dtype].onnx : "unknown";
}

pfrt_dtype dtype_from_name(std::string_view name) {
  for (pfrt_dtype d = 1; d < kCount; ++d)
    if (kRows[d].name == name || kRows[d].onnx == name) return d;
  return PFRT_DTYPE_UNSET;
}

uint32_t dtype_bits(pfrt_dtype dtype) {
  if (dtype == PFRT_DTYPE_STRING) return sizeof(pfrt_string) * 8;
  return dtype < kCount ? kRows[dtype].bits : 0;
}

size_t dtype_size(pfrt_dtype dtype) { return dtype_bits(dtype) / 8; }

bool dtype_is_float(pfrt_dtype dtype) {
  switch (dtype) {
    case PFRT_DTYPE_FLOAT16:
    case PFRT_DTYPE_BFLOAT16:
    case PFRT_DTYPE_FLOAT32:
    case PFRT_DTYPE_FLOAT64:
    case PFRT_DTYPE_FLOAT8E4M3FN:
    case PFRT_DTYPE_FLOAT8E4M3FNUZ:
    case PFRT_DTYPE_FLOAT8E5M2:
    case PFRT_DTYPE_FLOAT8E5M2FNUZ:
    case PFRT_DTYPE_FLOAT4E2M1:
    case PFRT_DTYPE_FLOAT8E8M0:
      return true;
    default:
      return false;
  }
}

bool dtype_is_integer(pfrt_dtype dtype) {
  return dtype_known(dtype) && !dtype_is_float(dtype) && dtype != PFRT_DTYPE_STRING &&
         dtype != PFRT_DTYPE_BOOL && dtype != PFRT_DTYPE_COMPLEX64 &&
         dtype != PFRT_DTYPE_COMPLEX128;
}

bool dtype_is_signed(pfrt_dtype dtype) {
  switch (dtype) {
    case PFRT_DTYPE_INT2:
    case PFRT_DTYPE_INT4:
    case PFRT_DTYPE_INT8:
    case PFRT_DTYPE_INT16:
    case PFRT_DTYPE_INT32:
    case PFRT_DTYPE_INT64:
      return true;
    default:
      return dtype_is_float(dtype);
  }
}

int64_t element_count(const int64_t* dims, size_t rank) {
  constexpr int64_t kLimit = int64_t{1} << 62;
  int64_t count = 1;
  bool zero = false;
  for (size_t i = 0; i < rank; ++i) {
    if (dims[i] < 0) return -1;
    if (dims[i] == 0) {
      zero = true;
      continue;
    }
    if (__builtin_mul_overflow(count, dims[i], &count) || count > kLimit) return -1;
  }
  return zero ? 0 : count;
}

uint64_t tensor_bytes(pfrt_dtype dtype, int64_t count) {
  const uint64_t bits = dtype_bits(dtype);
  if (bits == 0 || count < 0) return UINT64_MAX;
  uint64_t all = 0;
  if (__builtin_mul_overflow(static_cast<uint64_t>(count), bits, &all) || all > uint64_t{1} << 62)
    return UINT64_MAX;
  return (all + 7) / 8;
}

}  // namespace pfrt
