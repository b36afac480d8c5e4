// SPDX-License-Identifier: Apache-2.0
//
// What a session makes of one node, and whether two such outcomes are the same.
#pragma once

#include <string>
#include <vector>

#include "test/empty/table.h"

namespace pfrt_empty {

struct Output {
  DType dtype = DType::Float32;
  Dims dims;
  std::vector<double> values;  // empty where only the dimensions are compared
};

struct Outcome {
  std::string refused;  // by whom and why; empty when it ran
  std::vector<Output> outputs;
};

enum class Form {
  kFed,      // all inputs are fed, their dimensions declared
  kDynamic,  // the dimensions of 0 are not declared, and inputs without zeros are run first
  kWeights,  // inputs after the first are constants
  kTail,     // the same, and an elementwise chain follows the first output where that is float32
};

Outcome outcome_of(const NodeLine& node, const std::vector<Operand>& inputs, Form form,
                   pyflame_rt::OptLevel level);
// Of the table's text; nothing to compare with where it is "x".
Outcome expected_outcome(const std::string& text);
// Why |got| is not |wanted|, or nothing. Numbers may differ by a rounding of 16-bit floats where
// |coarse|.
std::string difference(const Outcome& wanted, const Outcome& got, bool coarse = false);

}  // namespace pfrt_empty
