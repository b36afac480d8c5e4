// SPDX-License-Identifier: Apache-2.0
//
// A model as plain data, to be made at random, cut down and printed. Names of values are unique
// over all bodies. Copies are deep except for the tensors, which nobody writes into.
#pragma once

#include <map>
#include <pyflame_rt/pyflame_rt.hpp>
#include <string>
#include <unordered_map>
#include <vector>

namespace pfrt_optimise {

using pyflame_rt::DType;
using pyflame_rt::Tensor;
using Attributes = std::map<std::string, pyflame_rt::AttributeValue>;
using Feed = std::unordered_map<std::string, Tensor>;

// A size. With |symbol| 0 it is fixed; else feeds may differ in it, and equal symbols have equal
// sizes. |n| is the size in the first feed.
struct Dim {
  int64_t n = 0;
  int symbol = 0;
  bool operator==(const Dim& other) const { return n == other.n && symbol == other.symbol; }
};
using Dims = std::vector<Dim>;

struct ValueType {
  DType type = DType::Float32;
  Dims dims;
};

struct BodySpec;

struct NodeSpec {
  std::string op;
  std::vector<std::string> inputs, outputs;  // an empty name is an absent one
  Attributes attributes;
  std::vector<BodySpec> bodies;
};

struct GraphSpec {
  std::vector<std::string> inputs, outputs;
  std::vector<NodeSpec> nodes;  // producers first
  std::map<std::string, Tensor> initializers;
};

struct BodySpec {
  std::string attribute;
  GraphSpec graph;
};

struct ModelSpec {
  int64_t opset = 0;  // 0: the newest
  GraphSpec graph;
  std::map<std::string, ValueType> types;  // types of all values
  bool outputs_have_dims = false;
  uint64_t misdeclared = 0;  // 0, or the seed of wrong types that are declared everywhere
  bool faulty = false;       // has a planted fault: levels may refuse it, but all alike
  std::vector<Feed> feeds;
};

Tensor make_tensor(DType type, const std::vector<int64_t>& dims, const std::vector<double>& values);
double element(const Tensor& tensor, int64_t index);
bool is_float(DType type);
std::vector<int64_t> sizes(const Dims& dims);

// Returns the names that |node| takes, and those that its bodies capture.
std::vector<std::string> uses(const NodeSpec& node);
// Drops nodes, initializers and inputs that no output needs.
void remove_dead(ModelSpec* model);
size_t node_count(const GraphSpec& graph);  // bodies included

pyflame_rt::Graph build(const ModelSpec& model);
// Prints the inputs and initializers, and then a line for each node.
std::string text_of(const ModelSpec& model);

}  // namespace pfrt_optimise
