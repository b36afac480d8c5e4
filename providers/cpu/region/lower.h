// SPDX-License-Identifier: Apache-2.0
//
// The elementwise operators that generated loops know: how each is written as operations of an
// Expression. Results equal the reference kernels' bit for bit where those only add, multiply,
// divide, take roots, round and compare. Exp, Sigmoid, Tanh, Erf, Gelu and other functions made of
// exponentials are within a few units in the last place of the exact value (README.md says how
// many). Rows are constants; thread-safe.
#pragma once

#include <span>
#include <string_view>

#include "providers/cpu/region/expression.h"
#include "providers/kit/node.h"

namespace pfrt::cpu {

struct ElementwiseRow {
  std::string_view op;  // of the default domain, all tensors float32
  uint32_t min_inputs;
  // |inputs| by position, kNoTerm where absent.
  Term (*lower)(Expression& expression, const SnapshotNode& node, std::span<const Term> inputs);
  // Whether the node's attributes and constants fit; may be null.
  bool (*fits)(const SnapshotNode& node);
};

std::span<const ElementwiseRow> elementwise_rows();
// The row for a node, or nullptr: another operator, type or form.
const ElementwiseRow* find_elementwise(const SnapshotNode& node);

}  // namespace pfrt::cpu
