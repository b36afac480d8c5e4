// SPDX-License-Identifier: Apache-2.0
//
// Graphs of one node whose run takes long, most of them seconds on one thread: what a deadline or a
// cancel has to stop in the middle. One for each operator that can run so long, in each form that
// has code of its own. Uses the C library alone; plain data and functions of it.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "pyflame_rt/pyflame_rt.h"

namespace pfrt_test {

// What an input holds.
enum class Fill {
  kZeros,
  kOnes,
  kNoise,    // numbers in [-1, 1), or small integers
  kCount,    // 0, 1, 2, ...
  kShuffle,  // the same in an order without order
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
  bool constant = false;  // of the model, such as axes and shapes
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
};

struct LongStep {
  std::string op, note, domain;
  std::vector<LongInput> inputs = {};
  std::vector<LongAttr> attrs = {};
  int outputs = 1;
};

std::vector<LongStep> long_steps();
// "MatMul of float64"
std::string name_of(const LongStep& step);
inline void PrintTo(const LongStep& step, std::ostream* out) { *out << name_of(step); }

// A model of the step and what it is fed. Statuses are the caller's to take.
pfrt_status* graph_of(const pfrt_api& api, const LongStep& step, pfrt_graph** out_graph);
pfrt_status* value_of(const pfrt_api& api, const LongInput& input, pfrt_value** out_value);

}  // namespace pfrt_test
