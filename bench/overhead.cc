// SPDX-License-Identifier: Apache-2.0
//
// What the runtime itself costs through the C ABI: opening an empty environment, and running graphs
// so small that nearly all of a run is overhead. Inputs change from run to run and outputs are
// preallocated. Prints medians over blocks; arguments: [--json].
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
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
  const char *op, *inputs[2], *output;
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
    if (row.inputs[1]) inputs[1] = str(row.inputs[1]);
    const pfrt_string output = str(row.output);
    pfrt_node node{};
    node.struct_size = sizeof node;
    node.op = str(row.op);
    node.inputs = inputs;
    node.input_count = row.inputs[1] ? 2 : 1;
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

Figure run_graph(std::string what, pfrt_env* env, const std::vector<NodeRow>& rows,
                 const char* threads) {
  constexpr int kBlocks = 201, kRuns = 500, kInputs = 16;
  pfrt_session* session = make_session(env, rows, threads);
  std::array<std::array<float, kWidth>, kInputs> inputs;
  for (size_t i = 0; i < kInputs; ++i)
    for (size_t j = 0; j < kWidth; ++j)
      inputs[i][j] = static_cast<float>(i) - static_cast<float>(j);
  std::array<float, kWidth> result{};
  pfrt_io in{}, out{};
  in.struct_size = out.struct_size = sizeof(pfrt_io);
  out.tensor = tensor(result.data(), kRowDims, 2);
  std::vector<double> samples;
  for (int block = 0; block < kBlocks; ++block) {
    const double start = now_us();
    for (int i = 0; i < kRuns; ++i) {
      in.tensor = tensor(inputs[static_cast<size_t>(i) % kInputs].data(), kRowDims, 2);
      check(api->session->run(session, &in, 1, &out, 1, nullptr));
    }
    samples.push_back((now_us() - start) / kRuns);
  }
  api->session->release(session);
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
      {"Add", {"x", "b"}, "s"}, {"Mul", {"s", "s"}, "m"}, {"Relu", {"m", nullptr}, "y"}};
  const std::vector<NodeRow> layer = {
      {"MatMul", {"x", "w"}, "p"}, {"Add", {"p", "b"}, "s"}, {"Relu", {"s", nullptr}, "y"}};
  const std::vector<NodeRow> steps = {
      {"MatMul", {"x", "w"}, "p"}, {"MatMul", {"p", "w"}, "q"}, {"MatMul", {"q", "w"}, "y"}};
  std::vector<Figure> figures = {open_environment()};
  pfrt_env* env = nullptr;
  check(api->env->create(nullptr, &env));
  figures.push_back(run_graph("run Add, Mul, Relu (one loop)", env, fused, "1"));
  figures.push_back(run_graph("run MatMul, Add, Relu", env, layer, "1"));
  figures.push_back(run_graph("run MatMul, MatMul, MatMul", env, steps, "1"));
  figures.push_back(run_graph("run MatMul, Add, Relu, any width", env, layer, "0"));
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
