// SPDX-License-Identifier: Apache-2.0
//
// Graphs written by the names of their values, and the CPU provider to run them, for tests of
// passes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/exec/packed.h"
#include "core/ir/graph.h"
#include "core/plan/assign.h"

namespace pfrt::test {

Logger& silent_logger();
std::vector<Candidate> cpu_alone();
PackedStore* packed();

// Builds a graph. |dims| of inputs are numbers, symbols, or "?".
class Writer {
 public:
  Writer();
  explicit Writer(Graph& outer);  // writes a body of |outer|

  Writer& input(const std::string& name, const std::vector<std::string>& dims,
                pfrt_dtype dtype = PFRT_DTYPE_FLOAT32);
  // Adds a constant of pseudo-random numbers between |low| and |high|.
  Writer& weights(const std::string& name, const Dims& dims, double low = -1, double high = 1);
  Writer& floats(const std::string& name, const Dims& dims, const std::vector<double>& values,
                 pfrt_dtype dtype = PFRT_DTYPE_FLOAT32);
  Writer& ints(const std::string& name, const std::vector<int64_t>& values);
  Writer& constant(const std::string& name, Tensor tensor);
  Writer& node(const std::string& op, const std::vector<std::string>& inputs,
               const std::vector<std::string>& outputs, std::vector<Attribute> attrs = {},
               const std::string& domain = {});
  Writer& output(const std::string& name);
  Graph& graph() { return *graph_; }
  Attribute as(const std::string& name) const;  // this body as an attribute
  std::shared_ptr<Graph> canonical();

 private:
  std::shared_ptr<Graph> graph_;
};

}  // namespace pfrt::test
