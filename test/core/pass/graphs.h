// SPDX-License-Identifier: Apache-2.0
//
// Small graphs for tests of passes. They are written as expressions of value names, optimised, and
// run before and after on the CPU provider with the same seeded random inputs.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/ir/graph.h"
#include "core/pass/engine/pipeline.h"

namespace pfrt::test {

inline Attribute perm(std::vector<int64_t> order) {
  return Attribute::of_ints("perm", std::move(order));
}
inline Attribute axis(int64_t at) { return Attribute::of_int("axis", at); }

class PassGraph {
 public:
  explicit PassGraph(int64_t opset = 17);

  // A dimension in |dims| is a number or the name of a symbol.
  std::string input(const std::string& name, const std::vector<std::string>& dims,
                    pfrt_dtype dtype = PFRT_DTYPE_FLOAT32);
  // Adds a constant of these elements, of rank 0 without |dims|; returns its name.
  std::string constant(const std::vector<double>& elements, const Dims& dims = {},
                       pfrt_dtype dtype = PFRT_DTYPE_FLOAT32);
  std::string constant_of(Tensor tensor);
  // Adds a constant of seeded random elements in [low, high).
  std::string weights(const Dims& dims, double low = -1, double high = 1,
                      pfrt_dtype dtype = PFRT_DTYPE_FLOAT32);
  std::string ints(const std::vector<int64_t>& elements);  // int64 of rank 1
  // Returns the name of the node's first output, "<op>_<n>"; the others have "_1", "_2", ...
  // appended.
  std::string node(const std::string& op, const std::vector<std::string>& inputs,
                   std::vector<Attribute> attrs = {}, size_t outputs = 1,
                   const std::string& domain = "");
  void output(const std::string& name);

  // Runs the standard pipeline of |level| and, with each choice of symbols in |shapes|, both
  // graphs; results must be within |tolerance| of each other. Returns the operators left in
  // topological order, such as "Relu, Add", or the error.
  std::string optimised(const std::vector<std::map<std::string, int64_t>>& shapes = {{}},
                        double tolerance = 1e-5, OptLevel level = OptLevel::kAll);
  // Returns the graph that optimised() made.
  const Graph& graph() const { return *after_; }
  const Node* find(const std::string& op) const;  // the first of them, or nullptr
  uint64_t applied(const std::string& rule) const;
  bool in_session = false;  // PassContext::in_session

 private:
  std::string fresh(const std::string& stem);
  std::shared_ptr<Graph> graph_, after_;
  PassResult result_;
  uint64_t seed_ = 1;
  int next_ = 0;
};

}  // namespace pfrt::test
