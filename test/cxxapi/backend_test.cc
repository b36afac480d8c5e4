// SPDX-License-Identifier: Apache-2.0
//
// The guide's "Creating Custom Backends": its class as printed, with bodies, used by sessions.
#include <gtest/gtest.h>

#include <atomic>
#include <pyflame_rt/backend.hpp>
#include <pyflame_rt/session.hpp>
#include <stdexcept>
#include <thread>

#include "test/cxxapi/floats.h"

namespace mybackend {

struct Config {
  float bias = 0;
};

class MyExecutor : public pyflame_rt::Backend {
 public:
  MyExecutor(const Config& config);

  const std::string& name() const override { return name_; }

  bool supports_op(const std::string& op_type) const override;

  std::vector<std::string> get_supported_ops() const override;

  std::vector<pyflame_rt::Tensor> execute(
      const pyflame_rt::Graph& graph,
      const std::unordered_map<std::string, pyflame_rt::Tensor>& input_feed,
      const std::vector<std::string>& output_names = {}) override;

  // For the test.
  std::atomic<int> calls{0}, nodes{0};
  std::function<void(std::vector<pyflame_rt::Tensor>&)> spoil;
  void rename(std::string name) { name_ = std::move(name); }

 private:
  std::string name_ = "my_backend";
  Config config_;
  // Backend-specific state
  int inside_ = 0;  // not atomic: execute is called by one thread at a time
};

MyExecutor::MyExecutor(const Config& config) : config_(config) {}

bool MyExecutor::supports_op(const std::string& op_type) const {
  for (const std::string& op : get_supported_ops())
    if (op == op_type) return true;
  return false;
}

std::vector<std::string> MyExecutor::get_supported_ops() const { return {"Add", "Neg", "NonZero"}; }

// Walks the graph. Adds of equal shapes also add a bias, which shows who computed.
std::vector<pyflame_rt::Tensor> MyExecutor::execute(
    const pyflame_rt::Graph& graph,
    const std::unordered_map<std::string, pyflame_rt::Tensor>& input_feed,
    const std::vector<std::string>& output_names) {
  using pyflame_rt::Tensor;
  ++calls;
  EXPECT_EQ(++inside_, 1);
  std::unordered_map<std::string, Tensor> values = input_feed;
  for (const auto& [name, tensor] : graph.initializers()) values[name] = tensor;
  for (const auto& node : graph.nodes()) {
    ++nodes;
    const Tensor& a = values.at(node->inputs()[0]);
    if (node->op_type() == "NonZero") {
      std::vector<int64_t> found;
      for (int64_t i = 0; i < a.num_elements(); ++i)
        if (a.data_ptr<float>()[i] != 0) found.push_back(i);
      const auto count = static_cast<int64_t>(found.size());
      values[node->outputs()[0]] = Tensor::from_vector(found, {1, count});
      continue;
    }
    Tensor y = a.clone();
    for (int64_t i = 0; i < y.num_elements(); ++i) {
      float& v = y.data_ptr<float>()[i];
      v = node->op_type() == "Neg"
              ? -v
              : v + values.at(node->inputs()[1]).data_ptr<float>()[i] + config_.bias;
    }
    values[node->outputs()[0]] = y;
  }
  std::vector<Tensor> results;
  for (const std::string& name : output_names) results.push_back(values.at(name));
  --inside_;
  if (spoil) spoil(results);
  return results;
}

}  // namespace mybackend

namespace pfrt_test {
namespace {

using namespace pyflame_rt;
using mybackend::MyExecutor;

std::shared_ptr<MyExecutor> registered(const std::string& name) {
  mybackend::Config config;
  config.bias = 100;
  auto backend = std::make_shared<MyExecutor>(config);
  backend->rename(name);
  BackendRegistry::instance().register_backend(backend);
  return backend;
}

// Registered before main.
const std::shared_ptr<MyExecutor> first_backend = registered("my_backend");

SessionOptions named(const std::string& name) {
  SessionOptions options;
  options.providers = {name, "CPUExecutionProvider"};
  return options;
}

std::shared_ptr<Node> node(const std::string& op, std::vector<std::string> inputs,
                           const std::string& output) {
  return std::make_shared<Node>(op + "_0", op, std::move(inputs), std::vector<std::string>{output});
}

// y = Relu(-(x + c)), x float32[N]
Graph add_neg_relu() {
  Graph graph("g");
  graph.add_input(TensorInfo("x", {std::nullopt}, DType::Float32));
  graph.add_output(TensorInfo("y", {std::nullopt}, DType::Float32));
  graph.add_initializer("c", Tensor::from_vector(std::vector<float>{1, -200}, {2}));
  graph.add_node(node("Add", {"x", "c"}, "a"));
  graph.add_node(node("Neg", {"a"}, "n"));
  graph.add_node(node("Relu", {"n"}, "y"));
  return graph;
}

Tensor pair(float a, float b) { return Tensor::from_vector(std::vector<float>{a, b}, {2}); }

TEST(GuideBackend, runs_what_it_supports) {
  first_backend->calls = first_backend->nodes = 0;
  const InferenceSession session(add_neg_relu(), named("my_backend"));
  EXPECT_EQ(session.get_providers(),
            (std::vector<std::string>{"my_backend", "CPUExecutionProvider"}));
  EXPECT_EQ(floats(session.run({}, {{"x", pair(1, 2)}})[0]), (std::vector<float>{0, 98}));
  EXPECT_EQ(first_backend->calls, 1);  // one region of two nodes
  EXPECT_EQ(first_backend->nodes, 2);
  const Explanation explanation = session.explain();
  ASSERT_EQ(explanation.steps.size(), 2u);
  EXPECT_EQ(explanation.steps[0].provider, "my_backend");
  EXPECT_EQ(explanation.steps[0].ops, "Add,Neg");
  EXPECT_NE(explanation.steps[1].refused.find("my_backend: supports_op says no"),
            std::string::npos);
  // Sessions that do not name the backend run without it.
  EXPECT_EQ(floats(InferenceSession(add_neg_relu()).run({}, {{"x", pair(1, 2)}})[0]),
            (std::vector<float>{0, 198}));
  EXPECT_EQ(first_backend->calls, 1);
}

TEST(GuideBackend, registry) {
  BackendRegistry& registry = BackendRegistry::instance();
  EXPECT_EQ(registry.get("my_backend"), first_backend);
  EXPECT_TRUE(registry.has("my_backend"));
  EXPECT_FALSE(registry.has("other"));
  EXPECT_EQ(registry.list().front(), "my_backend");
  EXPECT_THROW(registry.register_backend(first_backend), InputError);
  EXPECT_THROW(registry.register_backend(nullptr), InputError);
  // The library has a provider of that name.
  EXPECT_THROW((void)(Environment::instance(), registered("CPUExecutionProvider")), InputError);
  EXPECT_FALSE(registry.has("CPUExecutionProvider"));
}

TEST(GuideBackend, gives_sizes_that_only_a_run_tells) {
  Graph graph("g");
  graph.add_input(TensorInfo("x", {std::nullopt}, DType::Float32));
  graph.add_output(TensorInfo("y", {1, std::nullopt}, DType::Int64));
  graph.add_node(node("NonZero", {"x"}, "y"));
  const InferenceSession session(graph, named("my_backend"));
  const Tensor y = session.run({}, {{"x", pair(0, 2)}})[0];
  EXPECT_EQ(y.shape(), (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(y.data_ptr<int64_t>()[0], 1);
  EXPECT_EQ(session.run({}, {{"x", pair(0, 0)}})[0].num_elements(), 0);
}

TEST(GuideBackend, faults_reach_the_caller_with_its_name) {
  const auto backend = registered("faulty_backend");
  SessionOptions options = named("faulty_backend");
  options.fallback = false;
  const InferenceSession session(add_neg_relu(), options);
  const auto said = [&](std::function<void(std::vector<Tensor>&)> spoil) {
    backend->spoil = [spoil](std::vector<Tensor>& results) { spoil(results); };
    try {
      (void)session.run({}, {{"x", pair(1, 2)}});
    } catch (const std::exception& e) {
      return std::string(e.what());
    }
    return std::string("nothing was thrown");
  };
  const auto says = [&](std::function<void(std::vector<Tensor>&)> spoil, const char* part) {
    const std::string text = said(std::move(spoil));
    EXPECT_NE(text.find("faulty_backend"), std::string::npos) << text;
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  says([](auto& results) { results.clear(); }, "returned 0 tensors, expected 1");
  says([](auto& results) { results[0] = Tensor({2}, DType::Int64); }, "'n' is int64");
  says([](auto& results) { results[0] = Tensor({3}, DType::Float32); }, "[3], expected [2]");
  says([](auto& results) { results[0] = Tensor(); }, "undefined");
  EXPECT_EQ(floats((backend->spoil = nullptr, session.run({}, {{"x", pair(1, 2)}})[0])),
            (std::vector<float>{0, 98}));
}

TEST(GuideBackend, the_next_provider_takes_over_where_it_fails) {
  const auto backend = registered("weak_backend");
  backend->spoil = [](std::vector<Tensor>&) { throw std::runtime_error("out of order"); };
  const InferenceSession session(add_neg_relu(), named("weak_backend"));
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(floats(session.run({}, {{"x", pair(1, 2)}})[0]), (std::vector<float>{0, 198}));
  EXPECT_EQ(backend->calls, 1);
}

TEST(GuideBackendThreads, calls_execute_one_at_a_time) {
  const InferenceSession session(add_neg_relu(), named("my_backend"));
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i)
        EXPECT_EQ(floats(session.run({}, {{"x", pair(1, 2)}})[0]), (std::vector<float>{0, 98}));
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace pfrt_test
