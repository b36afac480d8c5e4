// SPDX-License-Identifier: Apache-2.0
//
// The result of a session of one node, and the comparison of two such outcomes.
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
  std::string refused;  // reason, and which side refused; empty when it ran
  std::vector<Output> outputs;
};

enum class Form {
  kFed,      // all inputs are fed, their dimensions declared
  kDynamic,  // the dimensions of 0 are not declared, and inputs without zeros are run first
  kWeights,  // inputs after the first are constants
  kTail,     // like kWeights, and an elementwise chain follows a float32 first output
};

Outcome outcome_of(const NodeLine& node, const std::vector<Operand>& inputs, Form form,
                   pyflame_rt::OptLevel level);
// Reads the table's text. The text "x" gives no outcome to compare with.
Outcome expected_outcome(const std::string& text);
// Returns why |got| is not |wanted|, or nothing. With |coarse|, numbers may differ by a rounding of
// 16-bit floats.
std::string difference(const Outcome& wanted, const Outcome& got, bool coarse = false);

}  // namespace pfrt_empty
