// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic on constants while rewriting: floating-point tensors as doubles and back. Pure;
// thread-safe.
#pragma once

#include <optional>
#include <vector>

#include "core/base/status.h"
#include "core/memory/tensor.h"

namespace pfrt {

// Elements of a float32, float64, float16 or bfloat16 tensor; nullopt for other tensors and
// nullptr.
std::optional<std::vector<double>> to_doubles(const Tensor* tensor);
// |values| rounded to |dtype|, which is one of those types.
Result<Tensor> from_doubles(pfrt_dtype dtype, Dims dims, const std::vector<double>& values);
// Multiplies each element of a tensor of such a type by the factor of its index on |axis|, with the
// precision of doubles and one rounding. A weight is read once and stored once, whatever its size.
Result<Tensor> scaled_along(const Tensor& tensor, size_t axis, const std::vector<double>& factors);
// Whether a constant of such a type has neither NaN nor infinities; constants of other types have
// none, and nullptr counts as unknown. Weights that one form skips, and another multiplies by a
// padding's zero, must be finite.
bool all_finite(const Tensor* tensor);
// The value of a one-element constant of a floating-point or integer type.
std::optional<double> scalar_of(const Tensor* tensor);

}  // namespace pfrt
