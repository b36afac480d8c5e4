// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/program/surrogate.h"

#include <algorithm>
#include <cmath>

namespace pfrt::cpu {
namespace {

double covariance(std::span<const double> a, std::span<const double> b, double length) {
  double square = 0;
  for (size_t i = 0; i < a.size(); ++i) square += (a[i] - b[i]) * (a[i] - b[i]);
  const double r = std::sqrt(5 * square) / length;
  return (1 + r + r * r / 3) * std::exp(-r);
}

// Solves L x = |x| for the lower triangle |factor| of |n| rows.
void solve_lower(const std::vector<double>& factor, std::vector<double>& x) {
  const size_t n = x.size();
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < i; ++j) x[i] -= factor[i * n + j] * x[j];
    x[i] /= factor[i * n + i];
  }
}

}  // namespace

void Surrogate::observe(std::vector<double> point, double value) {
  values_.reserve(values_.size() + 1);
  points_.push_back(std::move(point));
  values_.push_back(value);
}

double Surrogate::fit(double length, std::vector<double>& factor,
                      std::vector<double>& weights) const {
  const size_t n = values_.size();
  // A little more keeps the triangle regular where points coincide.
  const double noise = std::max(noise_ * noise_ / (deviation_ * deviation_), 1e-8);
  factor.assign(n * n, 0);
  double likelihood = 0;
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j <= i; ++j) {
      double sum = covariance(points_[i], points_[j], length) + (i == j ? noise : 0);
      for (size_t k = 0; k < j; ++k) sum -= factor[i * n + k] * factor[j * n + k];
      factor[i * n + j] = i == j ? std::sqrt(std::max(sum, 1e-12)) : sum / factor[j * n + j];
      if (i == j) likelihood -= std::log(factor[i * n + i]);
    }
  weights.resize(n);
  for (size_t i = 0; i < n; ++i) weights[i] = (values_[i] - mean_) / deviation_;
  solve_lower(factor, weights);
  for (const double w : weights) likelihood -= w * w / 2;
  for (size_t i = n; i-- > 0;) {
    for (size_t j = i + 1; j < n; ++j) weights[i] -= factor[j * n + i] * weights[j];
    weights[i] /= factor[i * n + i];
  }
  return likelihood;
}

void Surrogate::fit() {
  const size_t n = values_.size();
  if (fitted_ == n) return;
  mean_ = deviation_ = 0;
  for (const double v : values_) mean_ += v / static_cast<double>(n);
  for (const double v : values_) deviation_ += (v - mean_) * (v - mean_) / static_cast<double>(n);
  deviation_ = std::max(std::sqrt(deviation_), 1e-9);
  least_ = (std::ranges::min(values_) - mean_) / deviation_;
  double best = -INFINITY;
  std::vector<double> factor, weights;
  for (const double length : {0.15, 0.3, 0.6, 1.2}) {
    const double likelihood = fit(length, factor, weights);
    if (likelihood <= best) continue;
    best = likelihood;
    length_ = length;
    factor_.swap(factor);
    weights_.swap(weights);
  }
  fitted_ = n;
}

double Surrogate::expected_improvement(std::span<const double> point) {
  fit();
  std::vector<double> to(points_.size());
  double mean = 0, variance = 1;
  for (size_t i = 0; i < to.size(); ++i) {
    to[i] = covariance(points_[i], point, length_);
    mean += to[i] * weights_[i];
  }
  solve_lower(factor_, to);
  for (const double t : to) variance -= t * t;
  const double deviation = std::sqrt(std::max(variance, 1e-12)), gain = least_ - mean;
  const double z = gain / deviation;
  const double below = std::erfc(-z * M_SQRT1_2) / 2;
  const double density = std::exp(-z * z / 2) / std::sqrt(2 * M_PI);
  return std::max(gain * below + deviation * density, 0.0) * deviation_;
}

}  // namespace pfrt::cpu
