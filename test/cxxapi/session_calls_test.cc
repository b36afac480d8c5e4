// SPDX-License-Identifier: Apache-2.0
//
// What a session calls of the program: progress, samples one by one, log lines; and progress of a
// PassManager.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <pyflame_rt/opt/passes.hpp>
#include <pyflame_rt/session.hpp>
#include <stdexcept>

namespace pfrt_test {
namespace {

using namespace pyflame_rt;

Graph chain() {
  Graph graph("chain");
  graph.add_input(TensorInfo("x", {4}, DType::Float32));
  graph.add_output(TensorInfo("y", {4}, DType::Float32));
  const auto node = [&](const std::string& op, const std::vector<std::string>& in,
                        const std::string& out) {
    graph.add_node(std::make_shared<Node>(out, op, in, std::vector<std::string>{out}));
  };
  node("Add", {"x", "x"}, "a");
  node("Relu", {"a"}, "b");
  node("Mul", {"b", "x"}, "y");
  return graph;
}

InferenceSession session_of(const SessionOptions& options) {
  return InferenceSession(Model::from_graph(chain()), options);
}

struct Told {
  std::vector<double> fractions;
  Progress listen() {
    return [this](double fraction, const std::string&) {
      fractions.push_back(fraction);
      return true;
    };
  }
  void expect_whole() const {
    ASSERT_FALSE(fractions.empty());
    EXPECT_TRUE(std::is_sorted(fractions.begin(), fractions.end()));
    EXPECT_EQ(fractions.back(), 1.0);
  }
};

TEST(SessionCalls, progress_rises_to_one_and_stops) {
  Told told;
  SessionOptions options;
  options.progress = told.listen();
  session_of(options);
  told.expect_whole();
  options.progress = [](double, const std::string&) { return false; };
  EXPECT_THROW(session_of(options), CancelledError);
  options.progress = [](double, const std::string&) -> bool { throw std::logic_error("told"); };
  EXPECT_THROW(session_of(options), std::logic_error);
}

TEST(SessionCalls, samples_are_asked_for_one_by_one) {
  SessionOptions options;
  options.precision = "auto";
  std::vector<size_t> asked;
  options.sample_source = [&](size_t index) -> std::optional<SessionOptions::Sample> {
    asked.push_back(index);
    if (index == 3) return std::nullopt;
    SessionOptions::Sample sample;
    sample.emplace("x", Tensor({4}, DType::Float32));
    return sample;
  };
  const InferenceSession session = session_of(options);
  ASSERT_GE(asked.size(), 4u);
  EXPECT_EQ(std::vector<size_t>(asked.begin(), asked.begin() + 4),
            (std::vector<size_t>{0, 1, 2, 3}));
  options.sample_source = [](size_t) -> std::optional<SessionOptions::Sample> {
    throw std::logic_error("gone");
  };
  EXPECT_THROW(session_of(options), std::logic_error);
}

TEST(SessionCalls, the_session_keeps_its_logger) {
  const auto lines = std::make_shared<std::vector<std::string>>();
  SessionOptions options;
  options.log_level = "debug";
  options.logger = [lines](LogLevel, const std::string& line) {
    lines->push_back(line);
    throw std::runtime_error("is lost");
  };
  {
    const InferenceSession session = session_of(options);
    options.logger = nullptr;
    EXPECT_EQ(lines.use_count(), 2);
    const size_t before = lines->size();
    EXPECT_GT(before, 0u);
    session.run({}, {{"x", Tensor({4}, DType::Float32)}});
    EXPECT_GT(lines->size(), before);
  }
  EXPECT_EQ(lines.use_count(), 1);
  EXPECT_NE(lines->back().find("Cleanup"), std::string::npos);
}

TEST(SessionCalls, progress_of_a_pass_manager) {
  Told told;
  opt::PassManagerConfig config;
  config.progress = told.listen();
  Graph graph = chain();
  opt::PassManager::create_default(config).run_until_fixed_point(graph);
  told.expect_whole();
  config.progress = [](double, const std::string&) { return false; };
  Graph other = chain();
  EXPECT_THROW(opt::PassManager::create_default(config).run(other), CancelledError);
  EXPECT_EQ(other.nodes().size(), 3u);
}

}  // namespace
}  // namespace pfrt_test
