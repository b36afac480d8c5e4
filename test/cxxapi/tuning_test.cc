// SPDX-License-Identifier: Apache-2.0
//
// Results of tuning are in the cache folder for later sessions and other processes. These take them
// without measuring, whoever has found them, and give the same results.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <pyflame_rt/cache/binary_cache.hpp>
#include <pyflame_rt/pyflame_rt.hpp>
#include <pyflame_rt/tuning/auto_tuner.hpp>

#include "test/cxxapi/temporary_folder.h"

namespace pfrt_test {
namespace {

using namespace pyflame_rt;
using tuning::AutoTuner;
using tuning::AutoTunerOptions;
using tuning::KernelConfig;
using tuning::OpKernelInfo;
namespace fs = std::filesystem;

// Shapes that other tests of the process have not tuned.
const std::vector<std::vector<int64_t>> kConvShapes = {{1, 16, 37, 41}, {48, 16, 3, 3}};

Graph convolution(int64_t rows) {
  Graph graph("convolution");
  graph.add_input(TensorInfo("x", {{1, 16, rows, 41}}, DType::Float32));
  Tensor weights({48, 16, 3, 3}, DType::Float32);
  for (int64_t i = 0; i < weights.num_elements(); ++i)
    weights.data_ptr<float>()[i] = static_cast<float>(i % 17 - 8) / 16;
  graph.add_initializer("w", weights);
  const auto conv = make_node("conv", "Conv", {"x", "w"}, {"y"});
  conv->set_attr("pads", std::vector<int64_t>{1, 1, 1, 1});
  graph.add_node(conv);
  graph.add_output(TensorInfo("y", {{1, 48, rows, 41}}, DType::Float32));
  return graph;
}

class Tuned : public InTemporaryFolder {
 protected:
  void SetUp() override {
    options_.cache_dir = folder_.path() + "/kept";
    options_.num_threads = 1;
    options_.tune = "on";
  }
  struct Outcome {
    std::vector<float> y;
    ExplainStep step;  // the one that can be tuned
  };
  static Outcome run(const Graph& graph, const SessionOptions& options) {
    const InferenceSession session(graph, options);
    const TensorInfo x = graph.inputs()[0];
    Tensor input({1, 16, *x.shape[2], 41}, DType::Float32);
    for (int64_t i = 0; i < input.num_elements(); ++i)
      input.data_ptr<float>()[i] = static_cast<float>(i % 23 - 11) / 8;
    const Tensor y = session.run({}, {{"x", input}})[0];
    Outcome out;
    out.y.assign(y.data_ptr<float>(), y.data_ptr<float>() + y.num_elements());
    for (const ExplainStep& step : session.explain().steps)
      if (step.reason.find("tuned: ") != std::string::npos) out.step = step;
    return out;
  }
  // Runs in a child process that has to take results from the folder; returns the step's reason and
  // tuning.
  std::string run_elsewhere(const Graph& graph, const SessionOptions& options) const {
    const std::string answer = folder_.path() + "/answer";
    save_model(graph, "model.pfm");
    const pid_t child = ::fork();
    if (child == 0) {
      try {
        const Outcome outcome = run(load_model("model.pfm"), options);
        write_file(answer, outcome.step.reason + "|" + outcome.step.tuning);
      } catch (const std::exception& error) {
        write_file(answer, error.what());
      }
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return read_file(answer);
  }
  std::vector<cache::CacheEntryInfo> entries() const {
    cache::CacheConfig config;
    config.cache_dir = options_.cache_dir;
    std::vector<cache::CacheEntryInfo> out;
    for (auto& entry : cache::BinaryCache(config).entries(true))
      if (entry.kind == "tuned") out.push_back(entry);
    return out;
  }
  SessionOptions options_;
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(Tuned, sessions_take_what_another_has_found_without_measuring) {
  const Graph graph = convolution(36);
  SessionOptions plain = options_;
  plain.tune = "off";
  const Outcome expected = run(graph, plain);
  EXPECT_EQ(expected.step.tuning + expected.step.reason, "");
  const Outcome first = run(graph, options_);
  EXPECT_EQ(first.y, expected.y);
  if (first.step.tuning.empty()) GTEST_SKIP() << "kernels here have nothing to choose";
  EXPECT_FALSE(contains(first.step.tuning, "measured=0")) << first.step.tuning;
  ASSERT_EQ(entries().size(), 1u);
  EXPECT_TRUE(entries()[0].is_valid);
  EXPECT_EQ(entries()[0].model_path.find("1 measurements of CPUExecutionProvider on "), 0u)
      << entries()[0].model_path;
  const Outcome second = run(graph, options_);
  EXPECT_EQ(second.y, expected.y);
  EXPECT_TRUE(contains(second.step.reason, "(remembered)")) << second.step.reason;
  EXPECT_TRUE(contains(second.step.tuning, " measured=0")) << second.step.tuning;
  SessionOptions cached = options_;
  cached.tune = "cached";
  const Outcome third = run(graph, cached);
  EXPECT_EQ(third.y, expected.y);
  EXPECT_EQ(third.step.tuning, second.step.tuning);
  // Another shape has no result yet, and is not measured.
  const Outcome other = run(convolution(35), cached);
  EXPECT_TRUE(contains(other.step.reason, "not tuned: nothing is remembered")) << other.step.reason;
  EXPECT_EQ(entries().size(), 1u);
}

TEST_F(Tuned, other_processes_take_what_was_found) {
  const Graph graph = convolution(34);
  if (run(graph, options_).step.tuning.empty()) GTEST_SKIP() << "nothing to choose";
  const std::string there = run_elsewhere(graph, options_);
  EXPECT_TRUE(contains(there, "(remembered)") && contains(there, "measured=0")) << there;
}

TEST_F(Tuned, a_damaged_file_is_made_again) {
  const Graph graph = convolution(33);
  if (run(graph, options_).step.tuning.empty()) GTEST_SKIP() << "nothing to choose";
  const std::string path = entries()[0].cache_path, good = read_file(path);
  SessionOptions cached = options_;
  cached.tune = "cached";
  for (const std::string& bad : {std::string("foreign"), good.substr(0, good.size() / 2),
                                 std::string(good.size(), 'x'), std::string()}) {
    write_file(path, bad);
    // The process still has the results, and writes them to the folder again.
    EXPECT_TRUE(contains(run(graph, cached).step.reason, "(measured before)"));
    EXPECT_TRUE(contains(run(graph, cached).step.reason, "(remembered)"));
    EXPECT_TRUE(entries()[0].is_valid);
  }
}

TEST_F(Tuned, the_cache_lists_and_removes_it_and_its_limits_do_not) {
  const Graph graph = convolution(32);
  if (run(graph, options_).step.tuning.empty()) GTEST_SKIP() << "nothing to choose";
  cache::CacheConfig config;
  config.cache_dir = options_.cache_dir;
  config.max_entries = 1;
  config.max_size_bytes = 100'000;
  const cache::BinaryCache kept(config);
  kept.put("graph", one_node("Relu", {{1}}));
  kept.put("other", one_node("Relu", {{1}}));
  (void)kept.evict_if_needed();
  ASSERT_EQ(entries().size(), 1u);
  const std::string key = entries()[0].key;
  EXPECT_TRUE(kept.has(key));
  EXPECT_TRUE(kept.get_info(key));
  EXPECT_TRUE(kept.remove(key));
  EXPECT_FALSE(kept.remove(key));
  EXPECT_TRUE(entries().empty());
  EXPECT_TRUE(contains(run(graph, options_).step.reason, "(measured before)"));
  EXPECT_EQ(kept.clear(), 2u) << "a graph and the measurements";
  EXPECT_TRUE(entries().empty());
}

TEST_F(Tuned, an_entry_of_a_model_serves_sessions_that_tune_or_not) {
  const std::string path = folder_.path() + "/model.pfm";
  save_model(convolution(31), path);
  SessionOptions plain = options_;
  plain.tune = "off";
  EXPECT_EQ(cache::CacheKey::compute(path, plain), cache::CacheKey::compute(path, options_));
}

TEST_F(Tuned, options_that_have_no_use_are_refused) {
  const Graph graph = convolution(30);
  const auto refusal = [&](const SessionOptions& options) -> std::string {
    try {
      (void)InferenceSession(graph, options);
    } catch (const InvalidArgumentError& error) {
      return error.what();
    }
    return "";
  };
  SessionOptions nowhere = options_;
  nowhere.tune = "cached";
  nowhere.cache_dir = "off";
  EXPECT_TRUE(contains(refusal(nowhere), "give cache_dir")) << refusal(nowhere);
  for (const char* key : {"tune_budget_s", "tune_search", "tune_iterations", "tune_repeats"}) {
    SessionOptions off = options_;
    off.tune = "off";
    off.extra[key] = std::string(key) == "tune_search" ? "model" : "1";
    EXPECT_TRUE(contains(refusal(off), key)) << refusal(off);
  }
}

TEST_F(Tuned, a_budget_that_is_spent_leaves_the_default) {
  SessionOptions options = options_;
  options.extra["tune_budget_s"] = "1e-6";
  const Outcome outcome = run(convolution(29), options);
  if (outcome.step.reason.empty()) GTEST_SKIP() << "nothing to choose";
  EXPECT_TRUE(contains(outcome.step.reason, "not tuned: no time")) << outcome.step.reason;
  EXPECT_TRUE(entries().empty());
}

TEST_F(Tuned, one_operator_is_tuned_and_sessions_of_models_use_it) {
  AutoTunerOptions options;
  options.cache_dir = options_.cache_dir;
  options.search = "model";
  options.max_iterations = 3;
  options.session.num_threads = 1;
  const OpKernelInfo conv("Conv", {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  const KernelConfig config = AutoTuner(options).tune_kernel(conv, kConvShapes);
  EXPECT_FALSE(config.kernel_name.empty());
  EXPECT_GT(config.performance_score, 0.0f);
  if (config.int_params.empty()) GTEST_SKIP() << "nothing to choose: " << config.note;
  EXPECT_LE(config.measured, 1 + 10 + 3);
  EXPECT_GE(config.gain, 1.0f);
  EXPECT_EQ(config.note.find("tuned: "), 0u) << config.note;
  const KernelConfig again = AutoTuner(options).TuneKernel(conv, kConvShapes);
  EXPECT_EQ(again.int_params, config.int_params);
  EXPECT_EQ(again.measured, 0);
  EXPECT_TRUE(contains(again.note, "(remembered)")) << again.note;
  SessionOptions cached = options_;
  cached.tune = "cached";
  const Outcome model = run(convolution(37), cached);
  EXPECT_EQ(model.step.kernel, config.kernel_name);
  EXPECT_TRUE(contains(model.step.reason, "(remembered)")) << model.step.reason;
  SessionOptions plain = options_;
  plain.tune = "off";
  EXPECT_EQ(model.y, run(convolution(37), plain).y);
}

TEST_F(Tuned, an_operator_without_a_choice_has_its_score) {
  AutoTunerOptions options;
  options.cache_dir = options_.cache_dir;
  const KernelConfig config = AutoTuner(options).tune_kernel({"Softmax"}, {{4, 100}});
  EXPECT_TRUE(config.int_params.empty());
  EXPECT_GT(config.performance_score, 0.0f);
  EXPECT_EQ(config.gain, 1.0f);
  EXPECT_EQ(config.measured, 0);
  EXPECT_FALSE(config.kernel_name.empty());
  EXPECT_EQ(config.note, "the kernel has nothing to choose");
  EXPECT_TRUE(entries().empty());
}

TEST_F(Tuned, operators_of_all_types_are_made) {
  AutoTunerOptions options;
  options.search = "race";
  options.benchmark_iterations = 1;
  const AutoTuner tuner(options);
  for (const DType dtype : {DType::Float32, DType::Float16, DType::BFloat16, DType::Float64}) {
    OpKernelInfo product("MatMul");
    product.dtypes = {dtype};
    product.epilogue = {"Relu"};
    EXPECT_GT(tuner.tune_kernel(product, {{20, 30}, {30, 40}}).performance_score, 0.0f)
        << dtype_name(dtype);
  }
  OpKernelInfo gather("Gather");
  gather.dtypes = {DType::Float32, DType::Int64};
  gather.constant_inputs = std::vector<size_t>{0};
  EXPECT_GT(tuner.tune_kernel(gather, {{20, 30}, {5}}).performance_score, 0.0f);
}

TEST_F(Tuned, what_cannot_be_tuned_is_refused) {
  AutoTunerOptions options;
  options.benchmark_iterations = 0;
  EXPECT_THROW((void)AutoTuner(options).tune_kernel({"Relu"}, {{1}}), InvalidArgumentError);
  options.benchmark_iterations = 1;
  options.search = "guess";
  EXPECT_ANY_THROW((void)AutoTuner(options).tune_kernel({"Relu"}, {{1}}));
  options.search = "race";
  EXPECT_ANY_THROW((void)AutoTuner(options).tune_kernel({"NoSuchOperator"}, {{1}}));
  EXPECT_ANY_THROW((void)AutoTuner(options).tune_kernel({"MatMul"}, {{2, 3}, {4, 5}}));
  OpKernelInfo strings("Identity");
  strings.dtypes = {DType::String};
  EXPECT_THROW((void)AutoTuner(options).tune_kernel(strings, {{1}}), InvalidArgumentError);
}

}  // namespace
}  // namespace pfrt_test
