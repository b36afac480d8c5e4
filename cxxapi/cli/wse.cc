// SPDX-License-Identifier: Apache-2.0
//
// `pfrt wse`: the cost of a model, a product or a language model on a simulated wafer, and a
// comparison of its model of the machine with published figures. The provider computes all of it;
// this asks.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <pyflame_rt/ask.hpp>
#include <pyflame_rt/pyflame_rt.hpp>
#include <random>
#include <sstream>

#include "cxxapi/cli/commands.h"
#include "cxxapi/cli/line/output_file.h"
#include "cxxapi/cli/line/usage_error.h"
#include "cxxapi/cli/print/text.h"
#include "cxxapi/cli/tensors/feed.h"
#include "cxxapi/cli/tensors/sizes.h"

namespace cli {
namespace {

using pyflame_rt::InferenceSession;

std::map<std::string, std::string> device_options(const WseArgs& args) {
  std::map<std::string, std::string> out;
  for (const std::string& option : args.options) {
    const size_t equal = option.find('=');
    if (equal == std::string::npos)
      throw UsageError("--option " + option + ": give it as KEY=VALUE, as in execution=streaming");
    out[option.substr(0, equal)] = option.substr(equal + 1);
  }
  if (!args.chips.empty()) out["chips"] = args.chips;
  if (!args.arithmetic.empty()) out["arithmetic"] = args.arithmetic;
  if (!args.fabric.empty()) out["fabric"] = args.fabric;
  if (args.silicon) out["silicon"] = "true";
  return out;
}

// Whether the machine is a file, and not one of the provider's words.
bool is_file(const std::string& machine) { return machine.find('.') != std::string::npos; }

pyflame_rt::Answer ask(const WseArgs& args, const std::string& verb, std::string request,
                       std::map<std::string, std::string> options) {
  pyflame_rt::Question question;
  question.provider = "wse";
  question.verb = verb;
  question.request = std::move(request);
  question.device = is_file(args.machine) ? "wse2" : args.machine;
  if (is_file(args.machine)) options["machine_file"] = args.machine;
  question.options = std::move(options);
  return pyflame_rt::Environment::instance().ask(question);
}

void print(const pyflame_rt::Answer& answer) {
  std::fwrite(answer.text.data(), 1, answer.text.size(), stdout);
}

bool all_met(const pyflame_rt::Answer& answer) {
  for (const auto& [name, tensor] : answer.tensors)
    if (name == "not_met") return *static_cast<const int64_t*>(tensor.data()) == 0;
  return false;
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

// The picture has a background of its own, light or dark, and the page goes with it.
constexpr char kPageHead[] = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>a simulated wafer</title>
<style>:root { color-scheme: light dark; } body { margin: 0; background: #ffffff; }
svg { display: block; width: 100%; max-height: 100vh; }
@media (prefers-color-scheme: dark) { body { background: #0d1117; } }</style></head>
<body>
)";

void write_picture(const WseArgs& args, const std::string& svg) {
  keep_input(args.what, args.picture);
  std::ofstream out(args.picture, std::ios::binary);
  const bool page =
      args.picture.size() > 5 && args.picture.compare(args.picture.size() - 5, 5, ".html") == 0;
  if (page) out << kPageHead;
  out << svg;
  if (page) out << "</body></html>\n";
  out.flush();
  if (!out) throw std::runtime_error(args.picture + " cannot be written");
  if (!args.json) std::printf("picture written to %s\n", args.picture.c_str());
}

// Makes dimensions known by a run, which ends where values would be computed. Returns a note for
// the user.
std::string plan_dimensions(const InferenceSession& session, const WseArgs& args) {
  const Dims dims = parse_dims(args.dims);
  check_dims(session.get_inputs(), dims);
  const Feeder feeder(session.get_inputs(), {}, dims);
  const Attempt attempt = [&](const Feed& feed, const pyflame_rt::RunOptions* options) {
    try {
      run_once(session)(feed, options);
    } catch (const pyflame_rt::PyFlameRTError& error) {
      if (std::string(error.what()).find("timing_only") == std::string::npos) throw;
    }
  };
  try {
    const Dims assumed = fit_sizes(feeder, attempt);
    return assumed.empty() ? "" : "sizes " + assumed_text(assumed);
  } catch (const std::exception& error) {
    return "planned without the sizes of a run: " + one_line(error.what());
  }
}

void print_others(const InferenceSession& session) {
  std::string others;
  for (const pyflame_rt::ExplainStep& step : session.explain().steps)
    if (step.provider != "WSEExecutionProvider")
      others += "  " + step.nodes + " (" + step.ops +
                "): " + (step.refused.empty() ? step.reason : step.refused) + "\n";
  if (others.empty()) return;
  std::printf("\non the CPU:\n%s", others.c_str());
}

// Parses "4096x128x64".
std::vector<int64_t> sizes_of(const std::string& product) {
  std::vector<int64_t> out;
  std::istringstream parts(product);
  for (std::string part; std::getline(parts, part, 'x');) out.push_back(std::stoll(part));
  return out;
}

std::vector<float> random_numbers(int64_t count, uint32_t seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> out(static_cast<size_t>(count));
  for (float& value : out) value = normal(engine);
  return out;
}

// Computes the product in a session on a fabric of that size, and reports the time of the simulator
// and the difference of its results from fp64's.
void compute_product(const WseArgs& args) {
  const std::vector<int64_t> sizes = sizes_of(args.gemm);
  const int64_t m = sizes[0], k = sizes[1], n = sizes[2];
  const std::vector<float> a = random_numbers(m * k, 1), b = random_numbers(k * n, 2);
  pyflame_rt::Graph graph("product");
  graph.add_input({"a", {m, k}, pyflame_rt::DType::Float32});
  graph.add_initializer("b", pyflame_rt::Tensor::from_vector(b, {k, n}));
  graph.add_node(std::make_shared<pyflame_rt::Node>(
      "product", "MatMul", std::vector<std::string>{"a", "b"}, std::vector<std::string>{"c"}));
  graph.add_output({"c", {m, n}, pyflame_rt::DType::Float32});
  pyflame_rt::SessionOptions options;
  options.providers = {"wse"};
  options.device = is_file(args.machine) ? "wse2" : args.machine;
  const std::string side = args.grid.empty() ? "64" : args.grid;
  for (const auto& [key, value] : device_options(args))
    options.extra["provider.wse." + key] = value;
  if (is_file(args.machine)) options.extra["provider.wse.machine_file"] = args.machine;
  options.extra["provider.wse.fabric"] = side + "x" + side;
  const InferenceSession session(graph, options);
  const auto start = std::chrono::steady_clock::now();
  const std::vector<pyflame_rt::Tensor> out =
      session.run({}, {{"a", pyflame_rt::Tensor::from_vector(a, {m, k})}});
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const auto* const c = static_cast<const float*>(out[0].data());
  double largest = 0, error = 0;
  for (int64_t i = 0; i < m; i += std::max<int64_t>(1, m / 64))
    for (int64_t j = 0; j < n; j += std::max<int64_t>(1, n / 64)) {
      double sum = 0;
      for (int64_t l = 0; l < k; ++l)
        sum += static_cast<double>(a[static_cast<size_t>(i * k + l)]) *
               static_cast<double>(b[static_cast<size_t>(l * n + j)]);
      largest = std::max(largest, std::abs(sum));
      error = std::max(error, std::abs(sum - static_cast<double>(c[i * n + j])));
    }
  std::printf("values: %.2f s on this computer, %s; off by %.3g of the largest, against fp64\n",
              seconds.count(), session.explain().steps[0].reason.c_str(), error / largest);
}

int plan_model(const WseArgs& args) {
  auto options = device_options(args);
  options["timing_only"] = "true";
  if (is_file(args.machine)) options["machine_file"] = args.machine;
  pyflame_rt::SessionOptions session_options;
  session_options.device = is_file(args.machine) ? "wse2" : args.machine;
  for (const auto& [key, value] : options) session_options.extra["provider.wse." + key] = value;
  const InferenceSession session(args.what, session_options);
  const std::string note = plan_dimensions(session, args);
  print(ask(args, "plan", args.json ? "json" : "text", options));
  if (!args.json) {
    print_others(session);
    if (!note.empty()) std::printf("note: %s\n", note.c_str());
  }
  if (!args.picture.empty()) write_picture(args, ask(args, "plan", "svg", options).text);
  return 0;
}

// Builds and installations may leave the provider out.
void check_provider_is_here() {
  for (const pyflame_rt::ProviderInfo& provider : pyflame_rt::Environment::instance().providers()) {
    if (provider.name == "WSEExecutionProvider") return;
  }
  throw pyflame_rt::NotFoundError(
      "simulating a wafer: no folder of plug-ins has libpyflamert_provider_wse.so; builds with "
      "PYFLAME_RT_BUILD_WSE=ON make it, samples/quickstart.sh with --all");
}

}  // namespace

int wse_command(const WseArgs& args) {
  const std::string json = args.json ? "json" : "";
  const int asked = int{!args.what.empty()} + int{!args.gemm.empty()} + int{!args.gemv.empty()} +
                    int{args.language_model};
  if (asked != 1)
    throw UsageError(
        "give one thing to look at: a model's file, validate, machine, --gemm, --gemv or "
        "--language-model");
  if (args.values && (args.gemm.empty() || !args.algorithm.empty() || args.json))
    throw UsageError("--values goes with --gemm alone, by the algorithm that a session takes");
  if (!args.group.empty() && args.gemv.empty())
    throw UsageError("--group goes with --gemv: it divides the lines that its sums go along");
  check_provider_is_here();
  if (!args.gemm.empty() || !args.gemv.empty()) {
    std::vector<std::string> words = {args.gemm.empty() ? "gemv=" + args.gemv
                                                        : "gemm=" + args.gemm};
    if (!args.grid.empty()) words.push_back("grid=" + args.grid);
    if (!args.algorithm.empty()) words.push_back("algorithm=" + args.algorithm);
    if (!args.group.empty()) words.push_back("group=" + args.group);
    if (args.json) words.push_back(json);
    print(ask(args, "product", joined(words), device_options(args)));
    if (args.values) compute_product(args);
    return 0;
  }
  if (args.language_model) {
    std::vector<std::string> words = args.sizes;
    if (args.json) words.push_back(json);
    print(ask(args, "language-model", joined(words), device_options(args)));
    return 0;
  }
  if (args.what == "validate") {
    std::vector<std::string> words = args.changes;
    if (args.json) words.push_back(json);
    const pyflame_rt::Answer answer = ask(args, "validate", joined(words), {});
    print(answer);
    return all_met(answer) ? 0 : 1;
  }
  if (args.what == "machine") {
    print(ask(args, "machine", json, device_options(args)));
    return 0;
  }
  return plan_model(args);
}

}  // namespace cli
