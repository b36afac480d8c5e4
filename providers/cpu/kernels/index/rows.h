// SPDX-License-Identifier: Apache-2.0
//
// The lists that make up the index family, one a source file. Constants of the program;
// thread-safe.
#pragma once

#include <span>

#include "providers/cpu/kernel.h"

namespace pfrt::cpu {

std::span<const KernelRow> shape_rows();      // Shape, Size
std::span<const KernelRow> fill_rows();       // ConstantOfShape, Range, EyeLike, OneHot, Trilu
std::span<const KernelRow> gathering_rows();  // NonZero, Compress
std::span<const KernelRow> unique_rows();
std::span<const KernelRow> suppression_rows();  // NonMaxSuppression

}  // namespace pfrt::cpu
