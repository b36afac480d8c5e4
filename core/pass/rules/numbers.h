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

// Elements of a float32, float64, float16 or bfloat16 tensor; nullopt for others and for nullptr.
std::optional<std::vector<double>> to_doubles(const Tensor* tensor);
// |values| rounded to |dtype|, one of those.
Result<Tensor> from_doubles(pfrt_dtype dtype, Dims dims, const std::vector<double>& values);
// A tensor of one of those, each element times the factor of its index on |axis|: as if through
// doubles, rounded once. A weight is read once and stored once, however many there are.
Result<Tensor> scaled_along(const Tensor& tensor, size_t axis, const std::vector<double>& factors);
// Whether a constant of one of those has neither NaN nor infinities; others have none, and of
// nullptr nothing is known. What one form leaves out and another multiplies with a padding's zero
// has to be finite.
bool all_finite(const Tensor* tensor);
// The value of a one-element constant of a floating-point or integer type.
std::optional<double> scalar_of(const Tensor* tensor);

}  // namespace pfrt
