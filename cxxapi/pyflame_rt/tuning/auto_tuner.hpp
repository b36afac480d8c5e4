// SPDX-License-Identifier: Apache-2.0
//
// Tuning of one operator at one shape: finds by measurement how its kernel should divide the work.
// Results go to the cache folder, and sessions with SessionOptions::tune "on" or "cached" that have
// the same step take them from there without measuring.
//
//   pyflame_rt::tuning::AutoTuner tuner;
//   auto config = tuner.tune_kernel({"Conv"}, {{1, 64, 56, 56}, {64, 64, 3, 3}});
//   int band = config.int_params["band"];
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <locale>
#include <map>
#include <memory>
#include <optional>
#include <pyflame_rt/benchmark.hpp>
#include <pyflame_rt/graph.hpp>
#include <random>
#include <sstream>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pyflame_rt::tuning {

// An operator as it stands in a model.
struct OpKernelInfo {
  OpKernelInfo() = default;
  // Describes an operator of ai.onnx on Float32.
  OpKernelInfo(std::string of_type, std::map<std::string, AttributeValue> with = {})
      : op_type(std::move(of_type)), attributes(std::move(with)) {}

  // Operator name, "Conv".
  std::string op_type;
  // Attributes as the standard names them; missing ones have its defaults.
  std::map<std::string, AttributeValue> attributes;
  // Domain of the operator; empty = ai.onnx.
  std::string domain;
  // Element types of the inputs; the last one counts for inputs that follow, none means Float32.
  std::vector<DType> dtypes;
  // Positions of inputs that are constants, as weights are. Unset: all but the first of Conv,
  // ConvTranspose, Gemm and MatMul, none of others.
  std::optional<std::vector<size_t>> constant_inputs;
  // Opset of the domain; 0 = the newest.
  int64_t opset = 0;
  // Operators of one input that follow, such as "Relu". Kernels compute them on the way, so the
  // step is a different one with them.
  std::vector<std::string> epilogue;
};

// A kernel, and how it divides its work.
struct KernelConfig {
  // Parameters by the kernel's own names: "band", "positions". Empty where there is nothing to
  // choose.
  std::unordered_map<std::string, int> int_params;
  // Parameters that are not integers; present kernels have none.
  std::unordered_map<std::string, float> float_params;
  // The provider's name for the kernel, with the operators it computes on the way:
  // "conv_direct+relu".
  std::string kernel_name;
  // 1 / mean microseconds of a run: higher is better.
  float performance_score = 0.0f;
  // The default's time divided by that of these parameters, where they were measured; 1 = they are
  // the default.
  float gain = 1.0f;
  // Number of forms measured; 0 = the result was remembered, or there is nothing to choose.
  int measured = 0;
  // The result in words: "tuned: band 14 -> 28, 6 % faster (remembered)", or why it was not tuned.
  std::string note;
};

// Options of an AutoTuner.
struct AutoTunerOptions {
  // "model": ten forms that are usually worth it, then the most promising of many more, as a
  // Gaussian process of the times expects; "random": ten and then some at random; or "race", the
  // usual ones.
  std::string search = "model";
  // Seconds that one call may measure for; 0 = 3.
  double budget_s = 0;
  // Most forms that are measured after the first ten.
  int max_iterations = 30;
  // Number of runs for the score.
  int benchmark_iterations = 20;
  // Number of runs for each form; 0 = as many as take some milliseconds.
  int form_runs = 0;
  // Folder for the results; empty = the folder of PFRT_CACHE_DIR or, where there is none, only this
  // process remembers.
  std::string cache_dir;
  // Other options of the session, such as precision and threads.
  SessionOptions session;
};

namespace detail {

using namespace pyflame_rt::detail;

// Elements of magnitude 0.5 to 1, so that no sum of them is out of the ordinary.
inline Tensor made_up(const std::vector<int64_t>& shape, DType dtype, std::mt19937& random) {
  if (dtype == DType::String)
    throw InvalidArgumentError(
        "AutoTuner: the operator takes strings, which no kernel is tuned for");
  Tensor out(shape, dtype);
  std::uniform_real_distribution<float> uniform(0.5f, 1.0f);
  auto* const bytes = static_cast<uint8_t*>(out.data());
  const auto n = static_cast<size_t>(out.num_elements());
  for (size_t i = 0; i < n; ++i) {
    const float value = random() % 2 == 0 ? uniform(random) : -uniform(random);
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    const auto upper = static_cast<uint16_t>(bits >> 16);
    // Half a magnitude in [0.5, 1): exponent 14, ten bits of the fraction.
    const auto half =
        static_cast<uint16_t>((bits >> 16 & 0x8000u) | 14u << 10 | (bits >> 13 & 0x3ffu));
    switch (dtype) {
      case DType::Float32:
        std::memcpy(bytes + i * 4, &value, 4);
        break;
      case DType::Float64: {
        const double wide = value;
        std::memcpy(bytes + i * 8, &wide, 8);
        break;
      }
      case DType::BFloat16:
        std::memcpy(bytes + i * 2, &upper, 2);
        break;
      case DType::Float16:
        std::memcpy(bytes + i * 2, &half, 2);
        break;
      default:
        break;
    }
  }
  if (n > 0 && dtype != DType::Float32 && dtype != DType::Float64 && dtype != DType::BFloat16 &&
      dtype != DType::Float16)
    // Integers and bools: 0 and 1, which are in range wherever they are indices.
    for (size_t i = 0, width = out.size_bytes() / n; width > 0 && i < n; ++i)
      bytes[i * width] = static_cast<uint8_t>(random() % 2);
  return out;
}

}  // namespace detail

// Finds kernel configurations. An object holds only options; calls on several threads disturb each
// other's measurements.
class AutoTuner {
 public:
  // OpKernelInfo as a member of the class, where other runtimes have it.
  using OpKernelInfo = tuning::OpKernelInfo;
  // KernelConfig as a member of the class, where other runtimes have it.
  using KernelConfig = tuning::KernelConfig;

  // Throws nothing: tune_kernel checks the options.
  explicit AutoTuner(AutoTunerOptions options = {}) : options_(std::move(options)) {}

  // Options as given.
  const AutoTunerOptions& options() const noexcept { return options_; }

  // Returns the best configuration of the operator's kernel for inputs of |input_shapes|, measured
  // now or before. An operator with nothing to choose has its default, with the score. Throws
  // InvalidArgumentError for unknown options and dtypes, and otherwise what making and running a
  // session of such a model throws.
  KernelConfig tune_kernel(const OpKernelInfo& kernel_info,
                           const std::vector<std::vector<int64_t>>& input_shapes) const {
    if (options_.benchmark_iterations < 1 || options_.max_iterations < 0 || options_.form_runs < 0)
      throw InvalidArgumentError(
          "AutoTuner: benchmark_iterations is " + std::to_string(options_.benchmark_iterations) +
          ", max_iterations " + std::to_string(options_.max_iterations) + ", form_runs " +
          std::to_string(options_.form_runs) + "; give 1, 0 and 0 at least");
    std::unordered_map<std::string, Value> feed;
    const Graph graph = graph_of(kernel_info, input_shapes, &feed);
    const Benchmark benchmark(InferenceSession(graph, session_options()));
    const BenchmarkResult times =
        benchmark.run(feed, static_cast<size_t>(options_.benchmark_iterations), 1);
    return config_of(benchmark.session().explain(), times);
  }
  // Calls tune_kernel.
  KernelConfig TuneKernel(const OpKernelInfo& kernel_info,
                          const std::vector<std::vector<int64_t>>& input_shapes) const {
    return tune_kernel(kernel_info, input_shapes);
  }

 private:
  SessionOptions session_options() const {
    SessionOptions session = options_.session;
    session.tune = "on";
    session.extra["tune_search"] = options_.search;
    session.extra["tune_iterations"] = std::to_string(options_.max_iterations);
    session.extra["tune_repeats"] = std::to_string(options_.form_runs);
    std::ostringstream budget;
    budget.imbue(std::locale::classic());
    budget << options_.budget_s;
    session.extra["tune_budget_s"] = budget.str();
    if (!options_.cache_dir.empty()) session.cache_dir = options_.cache_dir;
    return session;
  }

  // Returns a graph of the operator and its epilogue; |feed| gets its inputs.
  static Graph graph_of(const OpKernelInfo& kernel_info,
                        const std::vector<std::vector<int64_t>>& shapes,
                        std::unordered_map<std::string, Value>* feed) {
    static constexpr const char* kWeighted[] = {"Conv", "ConvTranspose", "Gemm", "MatMul"};
    const bool weighted =
        kernel_info.domain.empty() && std::find(std::begin(kWeighted), std::end(kWeighted),
                                                kernel_info.op_type) != std::end(kWeighted);
    Graph graph("tuning");
    if (kernel_info.opset > 0) graph.set_opset(kernel_info.domain, kernel_info.opset);
    std::mt19937 random(7);
    std::vector<std::string> names;
    for (size_t i = 0; i < shapes.size(); ++i) {
      const std::string name = "input" + std::to_string(i);
      const std::vector<DType>& dtypes = kernel_info.dtypes;
      const DType dtype = dtypes.empty() ? DType::Float32 : dtypes[std::min(i, dtypes.size() - 1)];
      Tensor tensor = detail::made_up(shapes[i], dtype, random);
      const std::optional<std::vector<size_t>>& constants = kernel_info.constant_inputs;
      const bool constant =
          constants ? std::find(constants->begin(), constants->end(), i) != constants->end()
                    : weighted && i > 0;
      if (constant) {
        graph.add_initializer(name, tensor);
      } else {
        graph.add_input(TensorInfo(name, Shape(shapes[i].begin(), shapes[i].end()), dtype));
        feed->emplace(name, std::move(tensor));
      }
      names.push_back(name);
    }
    auto node = std::make_shared<Node>("tuned", kernel_info.op_type, names,
                                       std::vector<std::string>{"output"}, kernel_info.domain);
    for (const auto& attribute : kernel_info.attributes)
      std::visit([&](const auto& value) { node->set_attr(attribute.first, value); },
                 attribute.second);
    graph.add_node(node);
    std::string last = "output";
    for (const std::string& op : kernel_info.epilogue) {
      const std::string next = "after_" + last;
      graph.add_node(std::make_shared<Node>("", op, std::vector<std::string>{last},
                                            std::vector<std::string>{next}));
      last = next;
    }
    TensorInfo output(last, {}, DType::Undefined);  // as follows from the nodes
    output.unranked = true;
    graph.add_output(output);
    return graph;
  }

  // Returns the configuration of the step that was tuned or, where there is none, of the one with
  // the most work.
  static KernelConfig config_of(const Explanation& explanation, const BenchmarkResult& times) {
    KernelConfig config;
    config.performance_score = static_cast<float>(1e-6 / times.mean);
    const ExplainStep* best = nullptr;
    for (const ExplainStep& step : explanation.steps) {
      const bool better = best == nullptr || (best->tuning.empty() && !step.tuning.empty()) ||
                          (best->tuning.empty() == step.tuning.empty() && step.flops > best->flops);
      if (better) best = &step;
    }
    if (best == nullptr) {
      config.note = "the operator was computed beforehand: no step is left to tune";
      return config;
    }
    config.kernel_name = best->kernel;
    const size_t said = best->reason.find("tuned: ");
    const size_t start =
        said >= 4 && said != std::string::npos && best->reason.compare(said - 4, 4, "not ") == 0
            ? said - 4
            : said;
    config.note =
        said == std::string::npos ? "the kernel has nothing to choose" : best->reason.substr(start);
    for (const auto& [name, number] : numbers_of(best->tuning)) {
      if (name == "gain")
        config.gain = static_cast<float>(number);
      else if (name == "measured")
        config.measured = static_cast<int>(number);
      else if (number == std::floor(number))
        config.int_params[name] = static_cast<int>(number);
      else
        config.float_params[name] = static_cast<float>(number);
    }
    return config;
  }

  // Parses "NAME=NUMBER NAME=NUMBER".
  static std::vector<std::pair<std::string, double>> numbers_of(const std::string& text) {
    std::vector<std::pair<std::string, double>> out;
    std::istringstream words(text);
    words.imbue(std::locale::classic());
    double number = 0;
    for (std::string name; std::getline(words >> std::ws, name, '=') && words >> number;)
      out.emplace_back(name, number);
    return out;
  }

  AutoTunerOptions options_;
};

}  // namespace pyflame_rt::tuning
