// SPDX-License-Identifier: Apache-2.0
//
// Kinds of small subgraphs from which models are put together. A family takes values that a builder
// has, or makes them, and adds one to about fifteen nodes.
#pragma once

#include <span>

#include "test/optimise/builder.h"

namespace pfrt_optimise {

struct Family {
  const char* name;
  int weight;
  void (*add)(Builder& b);
  bool takes_empty = false;  // whether it takes values without elements
};

std::span<const Family> plain_families();       // elementwise operators, no-ops, copies
std::span<const Family> movement_families();    // change shapes and move elements
std::span<const Family> layer_families();       // convolutions, products, reductions
std::span<const Family> activation_families();  // activations as exporters write them
std::span<const Family> attention_families();
std::span<const Family> quantised_families();
std::span<const Family> control_families();
std::span<const Family> dependent_families();  // contents decide the size of results
std::span<const Family> size_families();       // read shapes, compute with them and use them

// Adds |count| uses of sizes that are computed from the shape of |x|, whose rank is at least 1.
void size_arithmetic(Builder& b, const Value& x, int64_t count);
// Adds |steps| elementwise operators that keep type and dimensions.
Value elementwise_chain(Builder& b, Value x, int64_t steps);
Value activation(Builder& b, const Value& x);
// Adds a LayerNormalization over the last dimension, which must not vary; needs opset 17.
Value normalised_rows(Builder& b, const Value& x);

}  // namespace pfrt_optimise
