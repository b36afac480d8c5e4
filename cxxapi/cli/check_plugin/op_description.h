// SPDX-License-Identifier: Apache-2.0
//
// What the description of an operator says of its nodes, and whether it makes sense. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pyflame_rt/custom.h"

namespace cli::check {

// Inputs and outputs of a node of the operator, as few as it takes.
uint32_t input_count(const pfrt_custom_op& op);
uint32_t output_count(const pfrt_custom_op& op);

// A type for each input: those that the operator names, and |otherwise|.
using Types = std::vector<pfrt_dtype>;
Types input_types(const pfrt_custom_op& op, pfrt_dtype otherwise);
// The type of output |i| for inputs of these types, where infer does not say it.
pfrt_dtype output_type(const pfrt_custom_op& op, const Types& inputs, size_t i);

// What is wrong with a description; empty when nothing is.
std::string fault_of(const pfrt_custom_op& op);
// Whether some opset and types are those of both.
bool clash(const pfrt_custom_op& a, const pfrt_custom_op& b);

}  // namespace cli::check
