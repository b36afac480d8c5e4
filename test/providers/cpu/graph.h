// SPDX-License-Identifier: Apache-2.0
//
// A few connected nodes through the provider's table of functions, compile to run, with buffers
// between guard pages. Plain data, and a function that may be called from any thread.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "test/providers/cpu/one_node.h"

namespace pfrt::test {

struct GraphNode {
  std::string op;
  std::vector<uint32_t> inputs, outputs;  // values; PFRT_NO_INDEX where absent
  std::vector<Attr> attrs;
  uint32_t tail_of = 0;  // as in snapshots
  std::string domain;
};

// Nodes in topological order. Values that no node puts out are inputs, unless they are constants.
struct Graph {
  std::vector<Data> values;
  std::vector<GraphNode> nodes;
  std::vector<uint32_t> outputs;
  // What compile is told of a value's dimensions where that is not what they are: symbols.
  std::map<uint32_t, Dims> told;
  pfrt_compile_hints hints = 0;
  const pfrt_tuning* tuning = nullptr;  // what specialise is given

  uint32_t add(Data data) {
    values.push_back(std::move(data));
    return static_cast<uint32_t>(values.size() - 1);
  }
  // Gives the output's value.
  uint32_t add(std::string op, std::vector<uint32_t> inputs, Dims dims,
               std::vector<Attr> attrs = {}, uint32_t tail_of = 0);
  std::string text() const;
};

struct GraphOutcome {
  std::string fault;                                   // why it was not compiled, made or run
  std::vector<std::string> kernels, details, tunings;  // of each step
  std::vector<std::vector<uint32_t>> nodes;
  uint64_t bytes = 0;    // of all steps
  size_t aliases = 0;    // buffers in another's memory
  size_t unaligned = 0;  // constants that need not be aligned
  std::vector<std::vector<char>> outputs;
};

GraphOutcome run(const Graph& graph, uint32_t workers = 1);
// Graphs that differ in the dimensions and values of inputs alone, each run by the executable of
// the first.
std::vector<GraphOutcome> run_each(std::span<const Graph> graphs, uint32_t workers = 1);

// What supports() says of node |head| of the graph with those after it as its epilogue: empty, or
// why not.
std::string refused_epilogue(const Graph& graph, uint32_t head);

}  // namespace pfrt::test
