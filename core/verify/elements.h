// SPDX-License-Identifier: Apache-2.0
//
// Elements of tensors of any type as numbers and back, for generating and comparing values. Pure;
// thread-safe.
#pragma once

#include <vector>

#include "core/memory/tensor.h"

namespace pfrt {

// Every element as a double, to which 64-bit integers are rounded; a complex element gives two.
// Empty for strings and tensors that are not in host memory.
std::vector<double> elements(const Tensor& tensor);
// Sets the elements to |values|, as many as elements() gives, rounded to the tensor's type.
void set_elements(Tensor& tensor, const std::vector<double>& values);

// Half the distance between 1 and the next number of a floating-point type; 0 for other types.
double rounding_of(pfrt_dtype dtype);

}  // namespace pfrt
