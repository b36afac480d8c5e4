// SPDX-License-Identifier: Apache-2.0
//
// What a run must give, and whether another one gave it: kinds, types and shapes exactly, values
// but for rounding. How much that is a second run says whose numbers were moved by their rounding.
#pragma once

#include <string>
#include <vector>

#include "core/verify/rounding_noise.h"

namespace pfrt {

class Expectation {
 public:
  // One of |traits| an output.
  Expectation(std::vector<ValuePtr> outputs, std::vector<OutputTraits> traits);

  // As far as |outputs| are away from what is expected others may be too.
  void allow(const std::vector<ValuePtr>& outputs);

  // Empty, or how |outputs| differ, which |graph| names. Random ones are not looked at.
  std::string difference(const Graph& graph, const std::vector<ValuePtr>& outputs) const;

 private:
  // Of the elements of one tensor of an output.
  struct Drift {
    double rms = 0, peak = 0;  // of all
    double largest = 0;
    uint64_t many = 0;  // that are further away than the tolerance
  };
  struct Distance;
  Distance measure(const Tensor& want, const Tensor& got, double tolerance,
                   const Drift& drift) const;

  std::vector<ValuePtr> outputs_;
  std::vector<OutputTraits> traits_;
  std::vector<std::vector<Drift>> drifts_;  // an output, a tensor in it
};

}  // namespace pfrt
