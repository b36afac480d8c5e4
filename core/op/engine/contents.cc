// SPDX-License-Identifier: Apache-2.0
#include "core/op/engine/contents.h"

namespace pfrt {

bool holds_data(pfrt_dtype dtype) {
  switch (dtype) {
    case PFRT_DTYPE_BOOL:
    case PFRT_DTYPE_INT8:
    case PFRT_DTYPE_INT16:
    case PFRT_DTYPE_INT32:
    case PFRT_DTYPE_INT64:
    case PFRT_DTYPE_UINT8:
    case PFRT_DTYPE_UINT16:
    case PFRT_DTYPE_UINT32:
    case PFRT_DTYPE_UINT64:
      return true;
    default:
      return false;
  }
}

std::optional<Shape> contents_of(const Tensor* constant) {
  if (!constant || !holds_data(constant->dtype)) return std::nullopt;
  const int64_t count = constant->count();
  if (count < 0 || count > static_cast<int64_t>(kMaxData)) return std::nullopt;
  Shape out;
  for (int64_t v : to_int64s(*constant)) out.push_back(narrow(constant->dtype, v));
  return out;
}

Dim narrow(pfrt_dtype dtype, Dim element) {
  if (!element.known()) return element;
  const int64_t v = element.value();
  switch (dtype) {
    case PFRT_DTYPE_BOOL:
      return v != 0 ? 1 : 0;
    case PFRT_DTYPE_INT8:
      return static_cast<int8_t>(v);
    case PFRT_DTYPE_INT16:
      return static_cast<int16_t>(v);
    case PFRT_DTYPE_INT32:
      return static_cast<int32_t>(v);
    case PFRT_DTYPE_INT64:
      return v;
    case PFRT_DTYPE_UINT8:
      return static_cast<uint8_t>(v);
    case PFRT_DTYPE_UINT16:
      return static_cast<uint16_t>(v);
    case PFRT_DTYPE_UINT32:
      return static_cast<uint32_t>(v);
    case PFRT_DTYPE_UINT64:
      return v >= 0 ? element : Dim();
    default:
      return {};
  }
}

}  // namespace pfrt
