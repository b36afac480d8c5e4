// SPDX-License-Identifier: Apache-2.0
//
// The rows of each family of operators, a function a source; operators.cc puts them together.
// Constant; thread-safe.
#pragma once

#include <span>
#include <string_view>

namespace pfrt::wse {

struct Operator;  // operators.h

constexpr std::string_view kMicrosoft = "com.microsoft";

std::span<const Operator> elementwise_operators();
std::span<const Operator> row_operators();     // softmax, reductions
std::span<const Operator> norm_operators();    // normalisations
std::span<const Operator> window_operators();  // pools
std::span<const Operator> move_operators();    // whole tensors or blocks of them
std::span<const Operator> cut_operators();     // parts of tensors by position
std::span<const Operator> attention_operators();
std::span<const Operator> rotary_operators();

}  // namespace pfrt::wse
