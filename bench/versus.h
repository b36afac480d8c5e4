// SPDX-License-Identifier: Apache-2.0
//
// Compares a kernel of ours, as a model of one node, with another library's: operands, and the
// table of figures. For programs that measure, on one thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
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
  double seconds = 1;  // for a row
  bool bf16() const { return precision == "bf16"; }
  bool int8() const { return precision == "int8"; }  // models of integers, at the usual precision
};

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Quantile |part| of |values|; 0.5 is the median.
inline double quantile(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(part * static_cast<double>(values.size()))];
}

// Kinds of operands. Outliers: every 64th column of |rows| of |width| is a hundred times larger.
// Lognormal: magnitudes span six decades.
enum class Operands { kNormal, kOutliers, kLognormal };
inline const char* name_of(Operands kind) {
  constexpr const char* kNames[] = {"normal", "outliers", "lognormal"};
  return kNames[static_cast<int>(kind)];
}

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

// A model of one node: x and constants -> y.
struct Ours {
  pyflame_rt::InferenceSession session;
  Tensor x, y;
  pyflame_rt::IOBinding binding;

  Ours(const pyflame_rt::Graph& graph, const Settings& settings, Tensor input, const Dims& out,
       DType type = DType::Float32)
      : session(graph, options(settings)), x(std::move(input)), y(out, type), binding(session) {
    binding.bind_input("x", x);
    binding.bind_output("y", y);
  }
  static pyflame_rt::SessionOptions options(const Settings& settings) {
    pyflame_rt::SessionOptions out;
    out.num_threads = settings.threads;
    out.precision = settings.int8() ? "fp32" : settings.precision;
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

template <typename A, typename B>
double rms_difference(const A* a, const std::vector<B>& b) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    difference += std::pow(double(a[i]) - double(b[i]), 2);
    size += std::pow(double(b[i]), 2);
  }
  return std::sqrt(difference / size);
}

// Words of PFRT_ISA below that in use. Under them kernels may be slower, but never faster.
inline std::vector<std::string> narrower_caps() {
  const char* const set = std::getenv("PFRT_ISA");
  const std::string cap = set == nullptr || *set == 0 ? "amx" : set;
  const bool beyond = cap == "amx" || cap == "avx512_bf16" || cap == "avx512_vnni";
  std::vector<std::string> out;
  if (!__builtin_cpu_supports("avx512f")) return out;
  if (beyond) out.push_back("avx512");
  if (beyond || cap == "avx512") out.push_back("avx2");
  return out;
}

// A kernel of ours under PFRT_ISA as it is, and under each narrower cap. Kernels read the variable
// whenever they are made or run, so it is set for each call.
class Capped {
 public:
  template <typename Make>
  explicit Capped(const Make& make) {
    const char* const set = std::getenv("PFRT_ISA");
    caps_.push_back(set == nullptr ? "" : set);
    for (std::string& cap : narrower_caps()) caps_.push_back(std::move(cap));
    for (const std::string& cap : caps_) {
      setenv("PFRT_ISA", cap.c_str(), 1);
      ours_.push_back(make());
    }
    use(0);
  }
  size_t size() const { return caps_.size(); }
  const std::string& cap(size_t i) const { return caps_[i]; }
  void use(size_t i) const { setenv("PFRT_ISA", caps_[i].c_str(), 1); }
  void run(size_t i) const { ours_[i]->binding.run(); }
  template <typename T = float>
  const T* result() const {
    return ours_[0]->y.data_ptr<T>();
  }

 private:
  std::vector<std::string> caps_;
  std::vector<std::unique_ptr<Ours>> ours_;
};

// Rates of the machine just now. Its tiles change their rate by a factor of four, for seconds at a
// time.
struct Peaks {
  double vectors = 0, tiles = 0;  // GFLOP/s, or GOP/s of int8; 0 = it has none

  static Peaks measure(const Settings& settings) {
    if (settings.int8())
      return {now("int8 dot", settings), now("int8 tiles, operands in L2", settings)};
    return {now("fp32 fma", settings), now("bf16 tiles, operands in L2", settings)};
  }
  // A float32 product is made of six products on tiles.
  double of(const Settings& settings) const {
    if (settings.int8()) return std::max(vectors, tiles);
    return settings.bf16() && tiles > 0 ? tiles : std::max(vectors, tiles / 6);
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

// Prints rows, and the geometric mean of their ratios. Column "wider" is the time under the fastest
// narrower cap over ours; below 1 the wider instructions do harm.
class Report {
 public:
  Report(const char* what, const Settings& settings) : settings_(settings) {
    std::printf("\n%-26s %-9s %7s %7s %6s %6s %6s %7s %7s %7s %8s\n", what, "operands", "ours",
                "oneDNN", "ratio", "best", "wider", settings.int8() ? "dot" : "fma", "tiles",
                "of peak", "rms diff");
  }
  ~Report() {
    if (count_ > 0)
      std::printf("%-26s %-9s %7s %7s %6.2f %6.2f\n", "geometric mean", "", "", "",
                  std::exp(logs_ / count_), std::exp(best_logs_ / count_));
    if (slower_ > 0)
      std::printf("%d row(s) are slower than under a narrower cap of PFRT_ISA\n", slower_);
  }
  // |difference| gives that of the results, and is called after all have run.
  void row(const std::string& what, const char* operands, double flops, const Capped& ours,
           const std::function<void()>& theirs, const std::function<double()>& difference) {
    const size_t peer = ours.size();  // the sides: ours by cap, then theirs
    std::vector<std::vector<double>> times(peer + 1);
    const auto once = [&](size_t side) {
      if (side == peer)
        theirs();
      else
        ours.run(side);
    };
    for (size_t side = 0; side <= peer; ++side) {  // packs, generates, warms up
      if (side < peer) ours.use(side);
      once(side);
    }
    ours.use(0);
    constexpr double kTurn = 0.02;
    const Peaks before = Peaks::measure(settings_);
    const auto start = Clock::now();
    for (size_t i = 0; i < 3 * times.size() || seconds_since(start) < settings_.seconds; ++i) {
      const size_t side = i % times.size();
      if (side < peer) ours.use(side);
      const auto turn = Clock::now();
      do {
        const auto begin = Clock::now();
        once(side);
        times[side].push_back(seconds_since(begin));
      } while (seconds_since(turn) < kTurn);
    }
    ours.use(0);
    const Peaks after = Peaks::measure(settings_);
    const Peaks peaks = {(before.vectors + after.vectors) / 2, (before.tiles + after.tiles) / 2};
    const auto ratio = [&](size_t side, double part) {
      return quantile(times[side], part) / quantile(times[0], part);
    };
    constexpr double kMedian = 0.5, kBest = 0.05, kNoise = 0.95;
    const double mine = flops / quantile(times[0], kMedian) / 1e9;
    size_t fastest = peer;
    for (size_t side = 1; side < peer; ++side)
      if (fastest == peer || ratio(side, kMedian) < ratio(fastest, kMedian)) fastest = side;
    char wider[16] = "-";
    if (fastest < peer) std::snprintf(wider, sizeof wider, "%.2f", ratio(fastest, kMedian));
    std::printf("%-26s %-9s %7.1f %7.1f %6.2f %6.2f %6s %7.0f %7.0f %6.0f%% %8.1e\n", what.c_str(),
                operands, mine, mine / ratio(peer, kMedian), ratio(peer, kMedian),
                ratio(peer, kBest), wider, peaks.vectors, peaks.tiles,
                100 * mine / peaks.of(settings_), difference());
    if (fastest < peer && ratio(fastest, kMedian) < kNoise) {
      std::printf("%26s slower than under PFRT_ISA=%s\n", "", ours.cap(fastest).c_str());
      ++slower_;
    }
    std::fflush(stdout);
    logs_ += std::log(ratio(peer, kMedian));
    best_logs_ += std::log(ratio(peer, kBest));
    ++count_;
  }

 private:
  const Settings& settings_;
  double logs_ = 0, best_logs_ = 0;
  int count_ = 0, slower_ = 0;
};

}  // namespace bench
