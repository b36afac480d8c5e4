// SPDX-License-Identifier: Apache-2.0
//
// Small graphs in canonical form 1 with the results that fp64 loops give, to compare a provider's
// results with. Immutable once made.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pyflame_rt/plugin.h"

namespace cli::check {

struct CaseAttr {
  std::string name;
  pfrt_attr_type type = PFRT_ATTR_INT;
  int64_t i = 0;
  float f = 0;
  std::string s;
  std::vector<int64_t> ints;
};

struct CaseValue {
  std::string name;
  pfrt_dtype dtype = PFRT_DTYPE_UNSET;
  std::vector<int64_t> dims;
  std::vector<double> data;  // exact in |dtype|
  bool constant = false;
  uint32_t producer = PFRT_NO_INDEX;
};

struct CaseNode {
  std::string op, domain;
  std::vector<uint32_t> inputs, outputs;
  std::vector<CaseAttr> attrs;
};

struct Case {
  std::string name;
  std::vector<CaseValue> values;
  std::vector<CaseNode> nodes;
  std::vector<uint32_t> inputs, outputs;  // of the graph; constants are no inputs
  bool known_operators = true;            // false: no provider can compute it
};

// A graph for each size of its batch. Where make(a) and make(b) differ, the dimension is symbolic.
struct CaseMaker {
  Case (*make)(int64_t batch);
  bool dynamic;
};
const std::vector<CaseMaker>& case_makers();

// Computes the fp64 result of a node; fills in dims and data of |out|.
void evaluate(const CaseNode& node, const std::vector<const CaseValue*>& inputs, CaseValue* out);

// Elements as bytes of |dtype|, and back. Types: float32, float64, int32, int64, uint8, bool.
std::vector<char> to_bytes(pfrt_dtype dtype, const std::vector<double>& data);
double element(pfrt_dtype dtype, const void* data, size_t index);
size_t element_bytes(pfrt_dtype dtype);
// Writes a type as "float32 [2,3]".
std::string type_text(const CaseValue& value);

}  // namespace cli::check
