// SPDX-License-Identifier: Apache-2.0
#include "core/pass/numbers.h"

#include "core/base/half.h"

namespace pfrt {

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

std::optional<double> scalar_of(const Tensor* tensor) {
  if (!tensor || tensor->count() != 1) return std::nullopt;
  if (const auto floats = to_doubles(tensor)) return floats->front();
  const std::vector<int64_t> ints = to_int64s(*tensor);
  return ints.size() == 1 ? std::optional(static_cast<double>(ints[0])) : std::nullopt;
}

}  // namespace pfrt
