// SPDX-License-Identifier: Apache-2.0
//
// Elements of tensors of any type as numbers and text. Pure functions; indices are row-major and
// must be in range.
#pragma once

#include <cstdint>
#include <pyflame_rt/tensor.hpp>
#include <string>

namespace cli {

bool is_float(pyflame_rt::DType dtype);  // of any width
bool is_complex(pyflame_rt::DType dtype);
// Returns the integer of an integer or bool tensor; unsigned 64-bit numbers keep their bits.
int64_t integer_at(const pyflame_rt::Tensor& tensor, int64_t index);
// Returns the number of a tensor that holds numbers; a complex number's real part.
double number_at(const pyflame_rt::Tensor& tensor, int64_t index);
double imaginary_at(const pyflame_rt::Tensor& tensor, int64_t index);
std::string text_at(const pyflame_rt::Tensor& tensor, int64_t index);

}  // namespace cli
