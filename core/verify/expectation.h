// SPDX-License-Identifier: Apache-2.0
//
// Holds the outputs that a run must give, and compares those of another run: kinds, types and
// shapes exactly, values up to rounding. Runs with numbers perturbed by their rounding show how
// large that is.
#pragma once

#include <string>
#include <vector>

#include "core/verify/rounding_noise.h"

namespace pfrt {

class Expectation {
 public:
  // |traits| has one entry for each output.
  Expectation(std::vector<ValuePtr> outputs, std::vector<OutputTraits> traits);

  // Lets others be as far away from the expected outputs as |outputs| are.
  void allow(const std::vector<ValuePtr>& outputs);

  // Describes how |outputs| differ, named as in |graph|, or is empty. Random outputs are not
  // compared.
  std::string difference(const Graph& graph, const std::vector<ValuePtr>& outputs) const;

 private:
  // Deviations of the elements of one tensor of an output.
  struct Drift {
    double rms = 0, peak = 0;  // over all elements
    double largest = 0;
    uint64_t many = 0;  // elements further away than the tolerance
  };
  struct Distance;
  Distance measure(const Tensor& want, const Tensor& got, double tolerance,
                   const Drift& drift) const;

  std::vector<ValuePtr> outputs_;
  std::vector<OutputTraits> traits_;
  std::vector<std::vector<Drift>> drifts_;  // by output, then by tensor in it
};

}  // namespace pfrt
