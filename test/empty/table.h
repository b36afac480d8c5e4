// SPDX-License-Identifier: Apache-2.0
//
// nodes.tsv, which record.py writes: a node a line, of eight fields. Operator, domain, opset,
// attributes, inputs, 1 or 0 for each output, and its variants with what they give. An attribute is
// name=KIND:value; an input "float32[2,3]", with ":0,1*5" after it where what it holds matters; a
// variant names the dimensions that are 0 as INPUT.AXIS, and as INPUT@VALUE elements of that value.
// Plain data.
#pragma once

#include <cstdint>
#include <map>
#include <pyflame_rt/pyflame_rt.hpp>
#include <string>
#include <vector>

namespace pfrt_empty {

using pyflame_rt::DType;
using pyflame_rt::Tensor;
using Dims = std::vector<int64_t>;

// A tensor as a table writes it.
struct Operand {
  bool present = false;
  DType dtype = DType::Float32;
  Dims dims;
  std::vector<std::string> values;  // empty: made up
};

struct Variant {
  std::string name;      // "0.1+1.0"
  std::string expected;  // the peer's outputs, or "x" where it has none
};

struct NodeLine {
  std::string op, domain;
  int64_t opset = 0;
  std::map<std::string, pyflame_rt::AttributeValue> attributes;
  std::vector<Operand> inputs;
  std::vector<bool> outputs;
  std::vector<Variant> variants;
  std::string text;  // operator, attributes and inputs, for failures
};

std::vector<NodeLine> read_nodes(const std::string& path);
// Reads "float32[2]:1,2" or "-".
Operand operand(const std::string& text);
// Returns the inputs with the zeros of |variant|; unchanged when it is "".
std::vector<Operand> with_zeros(const NodeLine& node, const std::string& variant);
Tensor tensor_of(const Operand& operand);
std::vector<double> numbers(const Tensor& tensor);
std::vector<std::string> split(const std::string& text, char by);

}  // namespace pfrt_empty
