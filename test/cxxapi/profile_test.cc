// SPDX-License-Identifier: Apache-2.0
//
// Profiles and benchmarks seen from C++.
#include <gtest/gtest.h>

#include <filesystem>
#include <pyflame_rt/pyflame_rt.hpp>

#include "test/cxxapi/temporary_folder.h"

namespace pfrt_test {
namespace {

using pyflame_rt::Benchmark;
using pyflame_rt::InferenceSession;
using pyflame_rt::RunOptions;
using pyflame_rt::SessionOptions;
using pyflame_rt::Tensor;
using pyflame_rt::Value;

class CxxProfile : public InTemporaryFolder {
 protected:
  static SessionOptions profiling() {
    SessionOptions options;
    options.enable_profiling = true;
    return options;
  }
  static void run(const InferenceSession& session, const std::string& tag) {
    RunOptions options;
    options.tag = tag;
    (void)session.run({}, {{"input", Tensor::from_vector<float>({-1, 2}, {1, 2})}}, options);
  }
  static size_t files() {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator("."),
                                             std::filesystem::directory_iterator()));
  }
};

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST_F(CxxProfile, has_the_runs_of_all_tags) {
  const InferenceSession session(one_node("Relu", {1, 2}), profiling());
  EXPECT_GT(session.get_profiling_start_time_ns(), 0u);
  run(session, "warmup");
  for (int i = 0; i < 100; ++i) run(session, "inference");
  const std::string path = session.end_profiling();
  EXPECT_EQ(path.rfind("pyflame_rt_profile_", 0), 0u) << path;
  run(session, "after the end");
  EXPECT_EQ(session.end_profiling(), path);
  const std::string trace = read_file(path);
  EXPECT_EQ(trace.rfind("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", 0), 0u);
  EXPECT_EQ(count(trace, "\"tag\":\"warmup\""), 1u);
  EXPECT_EQ(count(trace, "\"tag\":\"inference\""), 100u);
  EXPECT_EQ(count(trace, "\"op_name\":\"Relu\""), 101u);
  EXPECT_EQ(count(trace, "after the end"), 0u);
}

TEST_F(CxxProfile, is_written_at_the_end_where_it_has_a_place) {
  { run(InferenceSession(one_node("Relu", {1, 2}), profiling()), "unwanted"); }
  EXPECT_EQ(files(), 0u);
  SessionOptions options = profiling();
  options.profile_file_prefix = "mine";
  { run(InferenceSession(one_node("Relu", {1, 2}), options), "wanted"); }
  ASSERT_EQ(files(), 1u);
  const auto path = std::filesystem::directory_iterator(".")->path();
  EXPECT_EQ(path.filename().string().rfind("mine_", 0), 0u) << path;
  EXPECT_EQ(count(read_file(path.string()), "\"tag\":\"wanted\""), 1u);
}

TEST_F(CxxProfile, is_nothing_without_the_option) {
  const InferenceSession session(one_node("Relu", {1, 2}));
  EXPECT_EQ(session.end_profiling(), "");
  EXPECT_EQ(session.get_profiling_start_time_ns(), 0u);
  EXPECT_EQ(files(), 0u);
}

TEST(CxxBenchmark, computes_its_figures) {
  std::vector<double> seconds;
  for (int i = 101; i > 0; --i) seconds.push_back(i);
  const pyflame_rt::BenchmarkResult figures = Benchmark::of(seconds);
  EXPECT_EQ(figures.runs, 101u);
  EXPECT_DOUBLE_EQ(figures.mean, 51);
  EXPECT_DOUBLE_EQ(figures.std, std::sqrt(850.0));
  EXPECT_DOUBLE_EQ(figures.min, 1);
  EXPECT_DOUBLE_EQ(figures.max, 101);
  EXPECT_DOUBLE_EQ(figures.p50, 51);
  EXPECT_DOUBLE_EQ(figures.p99, 100);
  EXPECT_DOUBLE_EQ(Benchmark::of({1, 2}).p50, 1.5);
  EXPECT_EQ(Benchmark::of({}).runs, 0u);
}

TEST(CxxBenchmark, times_so_many_runs) {
  const Benchmark benchmark{InferenceSession(one_node("Relu", {1, 2}))};
  const std::unordered_map<std::string, Value> feed = {
      {"input", Value(Tensor::from_vector<float>({-1, 2}, {1, 2}))}};
  const pyflame_rt::BenchmarkResult figures = benchmark.run(feed, 20, 3);
  EXPECT_EQ(figures.runs, 20u);
  EXPECT_EQ(benchmark.session().statistics().runs, 23u);
  EXPECT_GT(figures.min, 0);
  EXPECT_THROW(benchmark.run(feed, 0), pyflame_rt::InvalidArgumentError);
}

}  // namespace
}  // namespace pfrt_test
