// SPDX-License-Identifier: Apache-2.0
//
// The interface of the microbenchmarks. Each file of this folder is a family: it adds the shapes
// that are worth looking at. Every row of the kernel table that takes a shape is measured on it,
// beside a session that runs the node. Counters give GFLOP/s and GB/s, and the part that they are
// of the rate that the machine showed just before and after.
#pragma once

#include <benchmark/benchmark.h>

#include <functional>

#include "bench/micro/step.h"

namespace micro {

// Registers a benchmark for each row that takes the node, and one for a session of it.
void add(const Node& node);

// Calls |once| to warm up, then as often as |state| says, and sets counters. One call does |flops|
// operations and moves |bytes|.
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
void add_reductions();

}  // namespace micro
