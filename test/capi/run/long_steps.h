// SPDX-License-Identifier: Apache-2.0
//
// Graphs of one node whose run takes long, most of them seconds on one thread: a deadline or a
// cancel has to stop them in the middle. Each operator that can run so long is here, in each form
// that has code of its own. Uses the C library alone; plain data and functions of it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "pyflame_rt/pyflame_rt.h"

namespace pfrt_test {

// Contents of an input.
enum class Fill {
  kZeros,
  kOnes,
  kNoise,    // numbers in [-1, 1), or small integers
  kCount,    // 0, 1, 2, ...
  kShuffle,  // 0, 1, 2, ... in a mixed order
  kWords,    // strings of a few words; one of 50 MB where it is alone
  kPages,    // strings of 100 KB
  kNumbers,  // strings that are numbers
  kRows,     // boxes [y, x, y + 1, x + 1] that do not meet
  kListed,
};

struct LongInput {
  pfrt_dtype dtype;
  std::vector<int64_t> dims;
  Fill fill = Fill::kNoise;
  std::vector<double> listed = {};
  bool constant = false;  // an initializer, such as axes and shapes
};

struct LongAttr {
  std::string name;
  pfrt_attr_type type;
  int64_t i = 0;
  float f = 0;
  std::string s = {};
  std::vector<int64_t> ints = {};
  std::vector<float> floats = {};
  std::vector<std::string> strings = {};
  size_t made_strings = 0;  // so many, made with the graph, in place of |strings|
};

struct LongStep {
  std::string op, note, domain;
  std::vector<LongInput> inputs = {};
  std::vector<LongAttr> attrs = {};
  int outputs = 1;
};

const std::vector<LongStep>& long_steps();
// Returns a name such as "MatMul of float64".
std::string name_of(const LongStep& step);

// These make the graph of the step, and a value for an input. The caller releases the statuses.
pfrt_status* graph_of(const pfrt_api& api, const LongStep& step, pfrt_graph** out_graph);
pfrt_status* value_of(const pfrt_api& api, const LongInput& input, pfrt_value** out_value);

}  // namespace pfrt_test
