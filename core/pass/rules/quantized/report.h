// SPDX-License-Identifier: Apache-2.0
//
// Reports for people what became of a quantized graph: which operators between DequantizeLinear and
// QuantizeLinear run on integers, and why others do not. Pure; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/ir/graph.h"

namespace pfrt {

struct QuantizedGroup {
  std::string op, name;  // the operator, and the name of its node or output
  std::string in_float;  // why it runs in float32; empty: in integers
};

// Groups of an optimised graph and its bodies. An operator on bytes, or on sums of their products,
// is a group in integers, and so is an elementwise one with byte operands whose result becomes
// bytes in the same loop. Other readers of dequantized values are groups in float32.
Result<std::vector<QuantizedGroup>> quantized_groups(const Graph& graph);

// "quantized groups: 2 in integers, 1 in float", and a line for each of the latter; empty where
// there are none.
std::vector<std::string> quantized_lines(const std::vector<QuantizedGroup>& groups);

}  // namespace pfrt
