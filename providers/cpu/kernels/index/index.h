// SPDX-License-Identifier: Apache-2.0
//
// Rows of the operators that make tensors from shapes, positions or few parameters, and of those
// whose output size depends on the data. The rows are constants of the program; thread-safe.
#pragma once

#include <span>

#include "providers/cpu/kernel/row.h"

namespace pfrt::cpu {

std::span<const KernelRow> shape_rows();      // Shape, Size
std::span<const KernelRow> fill_rows();       // ConstantOfShape, Range, EyeLike, OneHot, Trilu
std::span<const KernelRow> gathering_rows();  // NonZero, Compress
std::span<const KernelRow> unique_rows();
std::span<const KernelRow> suppression_rows();  // NonMaxSuppression

}  // namespace pfrt::cpu
