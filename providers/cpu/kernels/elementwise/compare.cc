// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/elementwise/binary.h"
#include "providers/cpu/kernels/elementwise/elementwise.h"

namespace pfrt::cpu {
namespace {

constexpr KernelRow kRows[] = {
    compare_row<[](auto a, auto b) { return a == b; }>("Equal", kNumbers | kBool, "equal_ref"),
    compare_row<[](auto a, auto b) { return a < b; }>("Less", kNumbers, "less_ref"),
    compare_row<[](auto a, auto b) { return b < a; }>("Greater", kNumbers, "greater_ref"),
    compare_row<[](auto a, auto b) { return a <= b; }>("LessOrEqual", kNumbers,
                                                       "less_or_equal_ref"),
    compare_row<[](auto a, auto b) { return b <= a; }>("GreaterOrEqual", kNumbers,
                                                       "greater_or_equal_ref"),
};

}  // namespace

std::span<const KernelRow> compare_kernels() { return kRows; }

}  // namespace pfrt::cpu
