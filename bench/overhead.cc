// SPDX-License-Identifier: Apache-2.0
//
// Costs of the runtime itself through the C ABI: opening an empty environment, and running graphs
// so small that nearly all of a run is overhead. Inputs change from run to run and outputs are
// preallocated. One row gives its runs settings: a deadline, a tag and a number that cancels them.
// Prints medians over blocks, and the processor time that 50 runs a second take. Arguments:
// [--json].
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "pyflame_rt/pyflame_rt.h"

namespace {

const pfrt_api* api = nullptr;

pfrt_string str(std::string_view text) { return {text.data(), text.size()}; }

void check(pfrt_status* status) {
  if (!status) return;
  const pfrt_string text = api->status->message(status);
  std::fprintf(stderr, "overhead: %.*s\n", static_cast<int>(text.size), text.data);
  std::exit(1);
}

double now_us() {
  const auto t = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::micro>(t).count();
}

struct Figure {
  std::string what;
  double median_us, least_us;
};

Figure summary(std::string what, std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return {std::move(what), samples[samples.size() / 2], samples.front()};
}

Figure open_environment() {
  constexpr int kTimes = 301;
  std::vector<double> samples;
  for (int i = 0; i < kTimes; ++i) {
    pfrt_env* env = nullptr;
    const double start = now_us();
    check(api->env->create(nullptr, &env));
    samples.push_back(now_us() - start);
    api->env->release(env);
  }
  return summary("open an empty environment", std::move(samples));
}

// ---- small graphs over x float32[1,8] ----

constexpr int64_t kWidth = 8;

pfrt_tensor tensor(const float* data, const int64_t* dims, uint32_t rank) {
  pfrt_tensor t{};
  t.struct_size = sizeof t;
  t.dtype = PFRT_DTYPE_FLOAT32;
  t.rank = rank;
  t.dims = dims;
  t.data = const_cast<float*>(data);
  t.bytes = sizeof(float);
  for (uint32_t i = 0; i < rank; ++i) t.bytes *= static_cast<uint64_t>(dims[i]);
  return t;
}

constexpr int64_t kRowDims[] = {1, kWidth}, kMatrixDims[] = {kWidth, kWidth};

struct NodeRow {
  std::string op, inputs[2], output;  // the second input may be empty
};

pfrt_session* make_session(pfrt_env* env, const std::vector<NodeRow>& rows, const char* threads) {
  static float weights[kWidth * kWidth], bias[kWidth];
  for (int i = 0; i < kWidth * kWidth; ++i) weights[i] = static_cast<float>(i % 7) * 0.25f - 0.5f;
  for (int i = 0; i < kWidth; ++i) bias[i] = static_cast<float>(i) * 0.1f;
  pfrt_graph* graph = nullptr;
  check(api->graph->create(str("overhead"), &graph));
  pfrt_value_info port{};
  port.struct_size = sizeof port;
  port.kind = PFRT_VALUE_TENSOR;
  port.dtype = PFRT_DTYPE_FLOAT32;
  port.rank = 2;
  port.dims = kRowDims;
  port.name = str("x");
  check(api->graph->add_input(graph, &port));
  port.name = str("y");
  check(api->graph->add_output(graph, &port));
  const pfrt_tensor w = tensor(weights, kMatrixDims, 2), b = tensor(bias, kMatrixDims, 1);
  check(api->graph->add_initializer(graph, str("w"), &w, 0, nullptr, nullptr));
  check(api->graph->add_initializer(graph, str("b"), &b, 0, nullptr, nullptr));
  for (const NodeRow& row : rows) {
    pfrt_string inputs[2] = {str(row.inputs[0]), {}};
    if (!row.inputs[1].empty()) inputs[1] = str(row.inputs[1]);
    const pfrt_string output = str(row.output);
    pfrt_node node{};
    node.struct_size = sizeof node;
    node.op = str(row.op);
    node.inputs = inputs;
    node.input_count = row.inputs[1].empty() ? 1 : 2;
    node.outputs = &output;
    node.output_count = 1;
    check(api->graph->add_node(graph, &node, nullptr));
  }
  pfrt_model* model = nullptr;
  check(api->model->from_graph(env, graph, nullptr, &model));
  pfrt_options* options = nullptr;
  check(api->options->create(PFRT_OPTIONS_SESSION, &options));
  check(api->options->set_text(options, str("num_threads"), str(threads)));
  pfrt_session_desc desc{};
  desc.struct_size = sizeof desc;
  desc.model = model;
  desc.options = options;
  pfrt_session* session = nullptr;
  check(api->session->create(env, &desc, &session));
  api->options->release(options);
  api->model->release(model);
  api->graph->release(graph);
  return session;
}

// Repeats a run of a session, each time on another input.
class Runner {
 public:
  Runner(pfrt_env* env, const std::vector<NodeRow>& rows, const char* threads,
         const pfrt_run_desc* desc = nullptr)
      : session_(make_session(env, rows, threads)), desc_(desc) {
    for (size_t i = 0; i < kInputs; ++i)
      for (size_t j = 0; j < kWidth; ++j)
        inputs_[i][j] = static_cast<float>(i) - static_cast<float>(j);
    in_.struct_size = out_.struct_size = sizeof(pfrt_io);
    out_.tensor = tensor(result_.data(), kRowDims, 2);
  }
  ~Runner() { api->session->release(session_); }
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  void run() {
    in_.tensor = tensor(inputs_[next_++ % kInputs].data(), kRowDims, 2);
    check(api->session->run(session_, &in_, 1, &out_, 1, desc_));
  }

 private:
  static constexpr size_t kInputs = 16;
  pfrt_session* const session_;
  const pfrt_run_desc* const desc_;
  std::array<std::array<float, kWidth>, kInputs> inputs_;
  std::array<float, kWidth> result_{};
  pfrt_io in_{}, out_{};
  size_t next_ = 0;
};

Figure run_graph(std::string what, pfrt_env* env, const std::vector<NodeRow>& rows,
                 const char* threads, const pfrt_run_desc* desc = nullptr) {
  constexpr int kBlocks = 201, kRuns = 500;
  Runner runner(env, rows, threads, desc);
  std::vector<double> samples;
  for (int block = 0; block < kBlocks; ++block) {
    const double start = now_us();
    for (int i = 0; i < kRuns; ++i) runner.run();
    samples.push_back((now_us() - start) / kRuns);
  }
  return summary(std::move(what), std::move(samples));
}

// Processor time of the process, all threads, in microseconds.
double busy_us() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto us = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_usec);
  };
  return us(used.ru_utime) + us(used.ru_stime);
}

// Processor time of a second with 50 runs, less that of a second with 50 sleeps alone.
Figure fifty_a_second(std::string what, pfrt_env* env, const std::vector<NodeRow>& rows,
                      const char* threads) {
  constexpr int kRuns = 50, kSeconds = 5;
  Runner runner(env, rows, threads);
  runner.run();
  const auto second = [](const auto& work) {
    const double start = busy_us();
    auto at = std::chrono::steady_clock::now();
    for (int i = 0; i < kRuns; ++i) {
      std::this_thread::sleep_until(at += std::chrono::milliseconds(1000 / kRuns));
      work();
    }
    return busy_us() - start;
  };
  std::vector<double> samples;
  for (int i = 0; i < kSeconds; ++i) {
    const double nothing = second([] {});
    samples.push_back(second([&runner] { runner.run(); }) - nothing);
  }
  return summary(std::move(what), std::move(samples));
}

}  // namespace

int main(int argc, char** argv) {
  const bool json = argc == 2 && std::strcmp(argv[1], "--json") == 0;
  if (argc > 1 && !json) {
    std::fprintf(stderr, "usage: overhead [--json]\n");
    return 2;
  }
  pfrt_abi_info info{};
  info.struct_size = sizeof info;
  api = pfrt_get_api(PFRT_ABI_VERSION, &info);
  if (!api) {
    std::fprintf(stderr, "overhead: %.*s\n", static_cast<int>(info.message.size),
                 info.message.data);
    return 1;
  }
  const std::vector<NodeRow> fused = {
      {"Add", {"x", "b"}, "s"}, {"Mul", {"s", "s"}, "m"}, {"Relu", {"m"}, "y"}};
  const std::vector<NodeRow> layer = {
      {"MatMul", {"x", "w"}, "p"}, {"Add", {"p", "b"}, "s"}, {"Relu", {"s"}, "y"}};
  const std::vector<NodeRow> steps = {
      {"MatMul", {"x", "w"}, "p"}, {"MatMul", {"p", "w"}, "q"}, {"MatMul", {"q", "w"}, "y"}};
  std::vector<NodeRow> chain;  // nothing in it folds or fuses
  for (int i = 0; i < 30; ++i)
    chain.push_back({"MatMul",
                     {i == 0 ? "x" : "p" + std::to_string(i - 1), "w"},
                     i == 29 ? "y" : "p" + std::to_string(i)});
  std::vector<Figure> figures = {open_environment()};
  pfrt_env* env = nullptr;
  check(api->env->create(nullptr, &env));
  figures.push_back(run_graph("run Add, Mul, Relu (one loop)", env, fused, "1"));
  const uint32_t cancel = 0;
  pfrt_run_desc desc{};
  desc.struct_size = sizeof desc;
  desc.cancel = &cancel;
  desc.timeout_ms = 60'000;
  desc.tag = str("request");
  figures.push_back(run_graph("the same, with settings", env, fused, "1", &desc));
  figures.push_back(run_graph("run MatMul, Add, Relu", env, layer, "1"));
  figures.push_back(run_graph("run MatMul, MatMul, MatMul", env, steps, "1"));
  figures.push_back(run_graph("run 30 x MatMul", env, chain, "1"));
  figures.push_back(run_graph("run MatMul, Add, Relu, any width", env, layer, "0"));
  figures.push_back(fifty_a_second("busy in a second with 50 runs", env, layer, "1"));
  figures.push_back(fifty_a_second("the same, any width", env, layer, "0"));
  api->env->release(env);
  if (json) {
    std::printf("[");
    for (size_t i = 0; i < figures.size(); ++i)
      std::printf("%s\n  {\"what\": \"%s\", \"median_us\": %.3f, \"least_us\": %.3f}", i ? "," : "",
                  figures[i].what.c_str(), figures[i].median_us, figures[i].least_us);
    std::printf("\n]\n");
    return 0;
  }
  std::printf("%-34s %10s %10s\n", "", "median us", "least us");
  for (const Figure& f : figures)
    std::printf("%-34s %10.2f %10.2f\n", f.what.c_str(), f.median_us, f.least_us);
  return 0;
}
