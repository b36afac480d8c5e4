// SPDX-License-Identifier: Apache-2.0
#include "core/pass/rules/numbers.h"

#include <cstring>
#include <functional>
#include <new>
#include <numeric>

#include "core/base/half.h"

namespace pfrt {
namespace {

// Whether no element's exponent, selected by |mask|, is all ones. |bytes| may be at any address.
template <typename Bits>
bool exponents_fit(const void* bytes, int64_t count, Bits mask) {
  const char* at = static_cast<const char*>(bytes);
  bool fit = true;
  for (int64_t i = 0; i < count; ++i, at += sizeof(Bits)) {
    Bits bits;
    std::memcpy(&bits, at, sizeof bits);
    fit &= (bits & mask) != mask;
  }
  return fit;
}

}  // namespace

bool all_finite(const Tensor* tensor) {
  if (!tensor) return false;
  const int64_t count = tensor->count();
  bool fit = true;
  const Status read = tensor->read([&](const void* bytes) {
    switch (tensor->dtype) {
      case PFRT_DTYPE_FLOAT32:
        fit = exponents_fit<uint32_t>(bytes, count, 0x7f800000);
        break;
      case PFRT_DTYPE_FLOAT64:
        fit = exponents_fit<uint64_t>(bytes, count, 0x7ff0000000000000);
        break;
      case PFRT_DTYPE_FLOAT16:
        fit = exponents_fit<uint16_t>(bytes, count, 0x7c00);
        break;
      case PFRT_DTYPE_BFLOAT16:
        fit = exponents_fit<uint16_t>(bytes, count, 0x7f80);
        break;
      default:
        break;
    }
  });
  return read.ok() && fit;
}

std::optional<std::vector<double>> to_doubles(const Tensor* tensor) {
  if (!tensor) return std::nullopt;
  const auto count = static_cast<size_t>(tensor->count());
  std::vector<double> out(count);
  const auto fill = [&](auto read) {
    for (size_t i = 0; i < count; ++i) out[i] = static_cast<double>(read(i));
  };
  switch (tensor->dtype) {
    case PFRT_DTYPE_FLOAT32:
      fill([at = tensor->as<float>()](size_t i) { return at[i]; });
      break;
    case PFRT_DTYPE_FLOAT64:
      fill([at = tensor->as<double>()](size_t i) { return at[i]; });
      break;
    case PFRT_DTYPE_FLOAT16:
      fill([at = tensor->as<uint16_t>()](size_t i) { return float16_to_float(at[i]); });
      break;
    case PFRT_DTYPE_BFLOAT16:
      fill([at = tensor->as<uint16_t>()](size_t i) { return bfloat16_to_float(at[i]); });
      break;
    default:
      return std::nullopt;
  }
  return out;
}

Result<Tensor> from_doubles(pfrt_dtype dtype, Dims dims, const std::vector<double>& values) {
  PFRT_ASSIGN(Tensor tensor, Tensor::allocate(dtype, std::move(dims), false));
  for (size_t i = 0; i < values.size(); ++i) {
    switch (dtype) {
      case PFRT_DTYPE_FLOAT32:
        tensor.as<float>()[i] = static_cast<float>(values[i]);
        break;
      case PFRT_DTYPE_FLOAT64:
        tensor.as<double>()[i] = values[i];
        break;
      case PFRT_DTYPE_FLOAT16:
        tensor.as<uint16_t>()[i] = float_to_float16(static_cast<float>(values[i]));
        break;
      case PFRT_DTYPE_BFLOAT16:
        tensor.as<uint16_t>()[i] = float_to_bfloat16(static_cast<float>(values[i]));
        break;
      default:
        return error(Code::kINTERNAL, "constants of ", dtype_name(dtype), " are not made here");
    }
  }
  return tensor;
}

Result<Tensor> scaled_along(const Tensor& tensor, size_t axis, const std::vector<double>& factors) {
  const auto first = tensor.dims.begin() + static_cast<int64_t>(axis);
  const auto inner = static_cast<size_t>(
      std::accumulate(first + 1, tensor.dims.end(), int64_t{1}, std::multiplies<>()));
  const auto count = static_cast<size_t>(tensor.count());
  if (tensor.dtype != PFRT_DTYPE_FLOAT32) {
    std::optional<std::vector<double>> numbers = to_doubles(&tensor);
    if (!numbers)
      return error(Code::kINTERNAL, "constants of ", dtype_name(tensor.dtype),
                   " are not scaled here");
    for (size_t i = 0; i < count; ++i) (*numbers)[i] *= factors[i / inner % factors.size()];
    return from_doubles(tensor.dtype, tensor.dims, *numbers);
  }
  const auto fill = [tensor, inner, count, factors](void* out) {
    // |bytes| may be |out|, or at any address.
    const auto scale = [&](const void* bytes) {
      const auto put = [from = static_cast<const char*>(bytes), at = static_cast<float*>(out)](
                           size_t i, double by) {
        float x;
        std::memcpy(&x, from + i * sizeof x, sizeof x);
        at[i] = static_cast<float>(static_cast<double>(x) * by);
      };
      if (inner == 1) {
        for (size_t i = 0; i < count; i += factors.size())
          for (size_t c = 0; c < factors.size(); ++c) put(i + c, factors[c]);
        return;
      }
      for (size_t i = 0, channel = 0; i < count; i += inner) {
        const double factor = factors[channel];
        for (size_t j = i; j < i + inner; ++j) put(j, factor);
        channel = (channel + 1) % factors.size();
      }
    };
    if (tensor.deferred() && !tensor.buffer->lies_at_origin()) {
      tensor.copy_to(out);
      scale(out);
    } else if (!tensor.read(scale).ok()) {
      throw std::bad_alloc();
    }
  };
  return Tensor::made_by(fill, tensor.dtype, tensor.dims, tensor.origin());
}

std::optional<double> scalar_of(const Tensor* tensor) {
  if (!tensor || tensor->count() != 1) return std::nullopt;
  if (const auto floats = to_doubles(tensor)) return floats->front();
  const std::vector<int64_t> ints = to_int64s(*tensor);
  return ints.size() == 1 ? std::optional(static_cast<double>(ints[0])) : std::nullopt;
}

}  // namespace pfrt
