// SPDX-License-Identifier: Apache-2.0
//
// Comparison of a result with an expected value, as the ONNX backend tests mean it. Pure functions.
#pragma once

#include <pyflame_rt/value.hpp>
#include <string>

namespace cli {

// Limits of a difference: |got - want| <= atol * max(1, largest) + rtol * |want|, where the largest
// finite magnitude of the expected tensor counts. Two-byte floats use at least 1e-2 for rtol.
struct Tolerance {
  double rtol = 1e-3;
  double atol = 1e-5;
};

// Returns an empty text when equal; otherwise the first difference. NaN equals NaN; integers, bools
// and strings are exact; sequences, maps and optionals are compared element by element. A sequence
// of maps may be expected as a dense [N,C] tensor with the keys in ascending order.
std::string difference(const pyflame_rt::Value& got, const pyflame_rt::Value& want,
                       const Tolerance& tolerance);

}  // namespace cli
