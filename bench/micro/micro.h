// SPDX-License-Identifier: Apache-2.0
//
// What the families of microbenchmarks share. Each file of this folder is a family: it adds the
// shapes that are worth looking at, and every row of the kernel table that takes one is measured on
// it, beside a session that runs the node. Counters are GFLOP/s and GB/s, and what part they are of
// the rate that the machine showed just before and after.
#pragma once

#include <benchmark/benchmark.h>

#include <functional>

#include "bench/micro/step.h"

namespace micro {

// Registers a benchmark for each row that takes the node, and one for a session of it.
void add(const Node& node);

// Calls |once| as often as |state| says, after a first time, and sets counters. A call does so
// much.
void measure(benchmark::State& state, const std::function<void()>& once, double flops,
             double bytes);
void measure_session(benchmark::State& state, const Node& node, double flops, double bytes);

void add_attention();
void add_convolutions();
void add_elementwise();
void add_normalisations();
void add_panels();
void add_pools();
void add_products();

}  // namespace micro
