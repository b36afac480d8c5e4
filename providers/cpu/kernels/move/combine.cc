// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/move/combine.h"

#include <cmath>
#include <type_traits>

#include "core/base/half.h"

namespace pfrt::cpu {
namespace {

template <typename T>
T merge(T a, T b, Reduction reduction) {
  if constexpr (std::is_floating_point_v<T>) {
    switch (reduction) {
      case Reduction::kAdd:
        return a + b;
      case Reduction::kMul:
        return a * b;
      case Reduction::kMax:
        return std::isnan(a) || a > b ? a : b;
      case Reduction::kMin:
        return std::isnan(a) || a < b ? a : b;
      default:
        return b;
    }
  } else {
    const auto wrap = [](uint64_t v) { return static_cast<T>(v); };
    switch (reduction) {
      case Reduction::kAdd:
        return wrap(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
      case Reduction::kMul:
        return wrap(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
      case Reduction::kMax:
        return a > b ? a : b;
      case Reduction::kMin:
        return a < b ? a : b;
      default:
        return b;
    }
  }
}

template <typename E>
void combine(void* to, const void* from, int64_t n, Reduction reduction) {
  E* const out = static_cast<E*>(to);
  const E* const in = static_cast<const E*>(from);
  for (int64_t i = 0; i < n; ++i) out[i] = merge(out[i], in[i], reduction);
}

// Sums and greatest are "or", products and least "and".
void combine_bools(void* to, const void* from, int64_t n, Reduction reduction) {
  const bool any = reduction == Reduction::kAdd || reduction == Reduction::kMax;
  uint8_t* const out = static_cast<uint8_t*>(to);
  const uint8_t* const in = static_cast<const uint8_t*>(from);
  for (int64_t i = 0; i < n; ++i) {
    const bool a = out[i] != 0, b = in[i] != 0;
    out[i] = any ? a || b : a && b;
  }
}

// Complex numbers have no order: sums and products alone.
template <typename T>
void combine_complex(void* to, const void* from, int64_t n, Reduction reduction) {
  T* const out = static_cast<T*>(to);
  const T* const in = static_cast<const T*>(from);
  for (int64_t i = 0; i < 2 * n; i += 2) {
    const T re = out[i], im = out[i + 1];
    const bool add = reduction == Reduction::kAdd;
    out[i] = add ? re + in[i] : re * in[i] - im * in[i + 1];
    out[i + 1] = add ? im + in[i + 1] : re * in[i + 1] + im * in[i];
  }
}

template <float (*Widen)(uint16_t), uint16_t (*Narrow)(float)>
void combine_short(void* to, const void* from, int64_t n, Reduction reduction) {
  uint16_t* const out = static_cast<uint16_t*>(to);
  const uint16_t* const in = static_cast<const uint16_t*>(from);
  for (int64_t i = 0; i < n; ++i) out[i] = Narrow(merge(Widen(out[i]), Widen(in[i]), reduction));
}

}  // namespace

std::optional<Reduction> reduction_from_name(std::string_view name) {
  if (name == "none") return Reduction::kNone;
  if (name == "add") return Reduction::kAdd;
  if (name == "mul") return Reduction::kMul;
  if (name == "max") return Reduction::kMax;
  if (name == "min") return Reduction::kMin;
  return std::nullopt;
}

CombineFn combine_fn(pfrt_dtype dtype) {
  switch (dtype) {
    case PFRT_DTYPE_FLOAT32:
      return combine<float>;
    case PFRT_DTYPE_FLOAT64:
      return combine<double>;
    case PFRT_DTYPE_FLOAT16:
      return combine_short<float16_to_float, float_to_float16>;
    case PFRT_DTYPE_BFLOAT16:
      return combine_short<bfloat16_to_float, float_to_bfloat16>;
    case PFRT_DTYPE_INT8:
      return combine<int8_t>;
    case PFRT_DTYPE_INT16:
      return combine<int16_t>;
    case PFRT_DTYPE_INT32:
      return combine<int32_t>;
    case PFRT_DTYPE_INT64:
      return combine<int64_t>;
    case PFRT_DTYPE_UINT8:
      return combine<uint8_t>;
    case PFRT_DTYPE_UINT16:
      return combine<uint16_t>;
    case PFRT_DTYPE_UINT32:
      return combine<uint32_t>;
    case PFRT_DTYPE_UINT64:
      return combine<uint64_t>;
    case PFRT_DTYPE_BOOL:
      return combine_bools;
    case PFRT_DTYPE_COMPLEX64:
      return combine_complex<float>;
    case PFRT_DTYPE_COMPLEX128:
      return combine_complex<double>;
    default:
      return nullptr;
  }
}

}  // namespace pfrt::cpu
