// SPDX-License-Identifier: Apache-2.0
//
// A model of a function that is costly to evaluate, for finding its least value in few evaluations:
// a Gaussian process with a Matern kernel (5/2), whose length scale is the likeliest of a few, and
// the expected improvement (Jones, Schonlau, Welch: Efficient Global Optimization, 1998). Belongs
// to one thread. May throw std::bad_alloc.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace pfrt::cpu {

class Surrogate {
 public:
  // |noise| is the standard deviation of values that are observed at one point.
  explicit Surrogate(double noise) : noise_(noise) {}

  // |point| has as many coordinates as those before, each about 0 to 1.
  void observe(std::vector<double> point, double value);
  // The amount by which the value at |point| is expected to be less than the least one observed; 0
  // or more. At least one was observed.
  double expected_improvement(std::span<const double> point);

 private:
  void fit();
  // Fits with the length scale |length|; gives the log likelihood, less a constant.
  double fit(double length, std::vector<double>& factor, std::vector<double>& weights) const;

  const double noise_;
  std::vector<std::vector<double>> points_;
  std::vector<double> values_;
  // The state of the fit, in which values are scaled to mean 0 and deviation 1.
  size_t fitted_ = 0;
  double mean_ = 0, deviation_ = 1, length_ = 1, least_ = 0;
  std::vector<double> factor_;   // lower triangle of the covariances' Cholesky factor, by rows
  std::vector<double> weights_;  // covariances' inverse by values
};

}  // namespace pfrt::cpu
