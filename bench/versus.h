// SPDX-License-Identifier: Apache-2.0
//
// A kernel of ours, as a model of one node, against another's: operands, and the table of figures.
// For programs that measure. One thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <pyflame_rt/pyflame_rt.hpp>
#include <random>
#include <string>
#include <vector>

namespace bench {

using pyflame_rt::DType;
using pyflame_rt::Tensor;
using Clock = std::chrono::steady_clock;
using Dims = std::vector<int64_t>;

struct Settings {
  int threads = 1;
  std::string precision = "fp32", only;
  double seconds = 1;  // a row
  bool bf16() const { return precision == "bf16"; }
};

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// |part| 0.5: the median.
inline double quantile(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(part * static_cast<double>(values.size()))];
}

// One column in 64 of |rows| of |width| is a hundred times the others; magnitudes over six decades.
enum class Operands { kNormal, kOutliers, kLognormal };
constexpr const char* kOperands[] = {"normal", "outliers", "lognormal"};

inline std::vector<float> numbers(Operands kind, int64_t count, int64_t width, uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> out(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    float x = normal(engine);
    if (kind == Operands::kOutliers && i % width % 64 == 17) x *= 100;
    if (kind == Operands::kLognormal) x = std::copysign(std::exp(2 * normal(engine)), x);
    out[static_cast<size_t>(i)] = x;
  }
  return out;
}

// A model of one node: x, w -> y.
struct Ours {
  pyflame_rt::InferenceSession session;
  Tensor x, y;
  pyflame_rt::IOBinding binding;

  Ours(const pyflame_rt::Graph& graph, const Settings& settings, Tensor input, const Dims& out)
      : session(graph, options(settings)),
        x(std::move(input)),
        y(out, DType::Float32),
        binding(session) {
    binding.bind_input("x", x);
    binding.bind_output("y", y);
  }
  static pyflame_rt::SessionOptions options(const Settings& settings) {
    pyflame_rt::SessionOptions out;
    out.num_threads = settings.threads;
    out.precision = settings.precision;
    return out;
  }
};

inline std::shared_ptr<pyflame_rt::Node> node_of(const char* op) {
  return std::make_shared<pyflame_rt::Node>(op, op, std::vector<std::string>{"x", "w"},
                                            std::vector<std::string>{"y"});
}

inline pyflame_rt::Graph one_node(const std::shared_ptr<pyflame_rt::Node>& node, const Dims& x,
                                  const Tensor& w, const Dims& y) {
  pyflame_rt::Graph graph("kernel");
  graph.add_input({"x", {x.begin(), x.end()}, DType::Float32});
  graph.add_initializer("w", w);
  graph.add_node(node);
  graph.add_output({"y", {y.begin(), y.end()}, DType::Float32});
  return graph;
}

inline double rms_difference(const float* a, const std::vector<float>& b) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    difference += std::pow(double(a[i]) - double(b[i]), 2);
    size += std::pow(double(b[i]), 2);
  }
  return std::sqrt(difference / size);
}

// What the machine can do just now. Its tiles change their rate by four, for seconds at a time.
struct Peaks {
  double fma = 0, tiles = 0;  // GFLOP/s; 0 = it has none

  static Peaks measure(const Settings& settings) {
    return {now("fp32 fma", settings), now("bf16 tiles, operands in L2", settings)};
  }
  // Of six products on tiles one float32 product is made.
  double of(const Settings& settings) const {
    return settings.bf16() && tiles > 0 ? tiles : std::max(fma, tiles / 6);
  }

 private:
  static double now(const char* name, const Settings& settings) {
    pyflame_rt::MeasureOptions options;
    options.provider = "CPUExecutionProvider";
    options.threads = static_cast<uint32_t>(settings.threads);
    options.seconds = 0.1;
    options.only = name;
    for (const pyflame_rt::Measurement& row : pyflame_rt::measure(options))
      if (row.threads == options.threads) return row.median;
    return 0;
  }
};

// Prints rows, and the mean of their ratios.
class Report {
 public:
  Report(const char* what, const Settings& settings) : settings_(settings) {
    std::printf("\n%-26s %-9s %7s %7s %6s %6s %7s %7s %7s %8s\n", what, "operands", "ours",
                "oneDNN", "ratio", "best", "fma", "tiles", "of peak", "rms diff");
  }
  ~Report() {
    if (count_ > 0)
      std::printf("%-26s %-9s %7s %7s %6.2f %6.2f\n", "geometric mean", "", "", "",
                  std::exp(logs_ / count_), std::exp(best_logs_ / count_));
  }
  // |difference| of the results, asked after both have run.
  void row(const std::string& what, Operands operands, double flops,
           const std::function<void()>& ours, const std::function<void()>& theirs,
           const std::function<double()>& difference) {
    std::vector<double> times[2];
    const std::function<void()>* sides[] = {&ours, &theirs};
    for (const auto* side : sides) (*side)();  // packs, generates, warms up
    constexpr double kTurn = 0.02;
    const Peaks before = Peaks::measure(settings_);
    const auto start = Clock::now();
    for (int i = 0; i < 6 || seconds_since(start) < settings_.seconds; ++i) {
      const auto turn = Clock::now();
      do {
        const auto begin = Clock::now();
        (*sides[i % 2])();
        times[i % 2].push_back(seconds_since(begin));
      } while (seconds_since(turn) < kTurn);
    }
    const Peaks after = Peaks::measure(settings_);
    const Peaks peaks = {(before.fma + after.fma) / 2, (before.tiles + after.tiles) / 2};
    const auto ratio = [&](double part) {
      return quantile(times[1], part) / quantile(times[0], part);
    };
    constexpr double kMedian = 0.5, kBest = 0.05;
    const double mine = flops / quantile(times[0], kMedian) / 1e9;
    std::printf("%-26s %-9s %7.1f %7.1f %6.2f %6.2f %7.0f %7.0f %6.0f%% %8.1e\n", what.c_str(),
                kOperands[static_cast<int>(operands)], mine, mine / ratio(kMedian), ratio(kMedian),
                ratio(kBest), peaks.fma, peaks.tiles, 100 * mine / peaks.of(settings_),
                difference());
    std::fflush(stdout);
    logs_ += std::log(ratio(kMedian));
    best_logs_ += std::log(ratio(kBest));
    ++count_;
  }

 private:
  const Settings& settings_;
  double logs_ = 0, best_logs_ = 0;
  int count_ = 0;
};

}  // namespace bench
