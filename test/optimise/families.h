// SPDX-License-Identifier: Apache-2.0
//
// Kinds of small subgraphs that models are put together from. A family takes values that a builder
// has, or makes what it needs, and adds one to about fifteen nodes.
#pragma once

#include <span>

#include "test/optimise/builder.h"

namespace pfrt_optimise {

struct Family {
  const char* name;
  int weight;
  void (*add)(Builder& b);
  bool takes_empty = false;  // values without elements
};

std::span<const Family> plain_families();       // elementwise operators, what does nothing, copies
std::span<const Family> movement_families();    // shapes and places of elements
std::span<const Family> layer_families();       // convolutions, products, reductions
std::span<const Family> activation_families();  // as exporters write them
std::span<const Family> attention_families();
std::span<const Family> quantised_families();
std::span<const Family> control_families();
std::span<const Family> dependent_families();  // results whose size follows from contents
std::span<const Family> size_families();       // shapes read, computed with and used

// |count| uses of sizes that are computed from the shape of |x|, which has a rank of at least 1.
void size_arithmetic(Builder& b, const Value& x, int64_t count);
// |steps| elementwise operators that keep type and dims.
Value elementwise_chain(Builder& b, Value x, int64_t steps);
Value activation(Builder& b, const Value& x);
// LayerNormalization of the last dimension, which does not vary; from opset 17 on.
Value normalised_rows(Builder& b, const Value& x);

}  // namespace pfrt_optimise
