// SPDX-License-Identifier: Apache-2.0
//
// Measures the time of a model's runs.
//
//   pyflame_rt::Benchmark benchmark("model.onnx");
//   double median = benchmark.run({{"input", tensor}}).p50;
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <pyflame_rt/session.hpp>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pyflame_rt {

// Times of the measured runs, in seconds. Quantiles are interpolated between two runs.
struct BenchmarkResult {
  // |std| is that of these runs, not an estimate for a larger set.
  double mean = 0, std = 0, min = 0, max = 0;
  // The median, and the 99th percentile.
  double p50 = 0, p99 = 0;
  // Number of measured runs.
  size_t runs = 0;
};

// Times runs of a session, one after another. For one thread at a time.
class Benchmark {
 public:
  // Throws what InferenceSession throws.
  explicit Benchmark(const std::string& path, const SessionOptions& options = {})
      : session_(path, options) {}
  // Takes over the session.
  explicit Benchmark(InferenceSession session) : session_(std::move(session)) {}

  // The session that is measured.
  const InferenceSession& session() const noexcept { return session_; }

  // Runs |warmup_runs| times, which also plans new shapes, then |num_runs| times with a clock.
  // Throws InvalidArgumentError for no runs, and what InferenceSession::run throws.
  BenchmarkResult run(const std::unordered_map<std::string, Value>& input_feed,
                      size_t num_runs = 100, size_t warmup_runs = 10,
                      const RunOptions& options = {}) const {
    if (num_runs == 0) throw InvalidArgumentError("num_runs is 0; time one run at least");
    for (size_t i = 0; i < warmup_runs; ++i) (void)session_.run_values({}, input_feed, options);
    std::vector<double> seconds;
    seconds.reserve(num_runs);
    for (size_t i = 0; i < num_runs; ++i) {
      const auto start = std::chrono::steady_clock::now();
      (void)session_.run_values({}, input_feed, options);
      seconds.push_back(
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    return of(std::move(seconds));
  }

  // Returns the figures of runs that took |seconds| each; all zero where there are none.
  static BenchmarkResult of(std::vector<double> seconds) {
    BenchmarkResult out;
    out.runs = seconds.size();
    if (seconds.empty()) return out;
    std::sort(seconds.begin(), seconds.end());
    const auto count = static_cast<double>(seconds.size());
    out.mean = std::accumulate(seconds.begin(), seconds.end(), 0.0) / count;
    double squares = 0;
    for (const double s : seconds) squares += (s - out.mean) * (s - out.mean);
    out.std = std::sqrt(squares / count);
    out.min = seconds.front();
    out.max = seconds.back();
    const auto quantile = [&](double q) {
      const double at = q * (count - 1);
      const auto below = static_cast<size_t>(at);
      const double next = seconds[std::min(below + 1, seconds.size() - 1)];
      return seconds[below] + (at - std::floor(at)) * (next - seconds[below]);
    };
    out.p50 = quantile(0.5);
    out.p99 = quantile(0.99);
    return out;
  }

 private:
  InferenceSession session_;
};

}  // namespace pyflame_rt
