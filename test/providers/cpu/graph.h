// SPDX-License-Identifier: Apache-2.0
//
// Runs a few connected nodes through the provider's table of functions, from compile to run, with
// buffers between guard pages. Plain data, and functions that may be called from any thread.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "test/providers/cpu/one_node.h"

namespace pfrt::test {

struct GraphNode {
  std::string op;
  std::vector<uint32_t> inputs, outputs;  // value ids; PFRT_NO_INDEX where absent
  std::vector<Attr> attrs;
  uint32_t tail_of = 0;  // the same as in snapshots
  std::string domain;
};

// Nodes in topological order. A value that no node outputs is an input, unless it is constant.
struct Graph {
  std::vector<Data> values;
  std::vector<GraphNode> nodes;
  std::vector<uint32_t> outputs;
  // Dimensions that compile is told of a value, where symbols replace the real ones.
  std::map<uint32_t, Dims> told;
  pfrt_compile_hints hints = 0;
  const pfrt_tuning* tuning = nullptr;  // given to specialise

  uint32_t add(Data data) {
    values.push_back(std::move(data));
    return static_cast<uint32_t>(values.size() - 1);
  }
  // Adds a node and returns its output.
  uint32_t add(std::string op, std::vector<uint32_t> inputs, Dims dims,
               std::vector<Attr> attrs = {}, uint32_t tail_of = 0);
  std::string text() const;
};

struct GraphOutcome {
  std::string fault;                                   // why it was not compiled, made or run
  std::vector<std::string> kernels, details, tunings;  // by step
  std::vector<std::vector<uint32_t>> nodes;
  uint64_t bytes = 0;    // moved by all steps
  size_t aliases = 0;    // buffers in another's memory
  size_t unaligned = 0;  // constants that need not be aligned
  std::vector<std::vector<char>> outputs;
};

GraphOutcome run(const Graph& graph, uint32_t workers = 1);
// Runs each graph with the executable of the first. The graphs differ only in dimensions and values
// of inputs.
std::vector<GraphOutcome> run_each(std::span<const Graph> graphs, uint32_t workers = 1);

// Returns the reason for which supports() refuses node |head| with the nodes behind it as its
// epilogue; empty when it takes them.
std::string refused_epilogue(const Graph& graph, uint32_t head);

}  // namespace pfrt::test
