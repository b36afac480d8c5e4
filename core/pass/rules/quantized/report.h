// SPDX-License-Identifier: Apache-2.0
//
// What became of a quantized graph: which operators between DequantizeLinear and QuantizeLinear run
// on integers, and why others do not. For people. Pure; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/ir/graph.h"

namespace pfrt {

struct QuantizedGroup {
  std::string op, name;  // of the operator, and of the node or what it makes
  std::string in_float;  // why it runs in float32; empty: in integers
};

// Of an optimised graph and its bodies. An operator on bytes, or on sums of their products, is a
// group in integers, and so is an elementwise one whose operands are bytes and whose result becomes
// bytes in the same loop. Others that read what is dequantized are groups in float32.
Result<std::vector<QuantizedGroup>> quantized_groups(const Graph& graph);

// "quantized groups: 2 in integers, 1 in float", and a line for each of the latter; empty where
// there are none.
std::vector<std::string> quantized_lines(const std::vector<QuantizedGroup>& groups);

}  // namespace pfrt
