// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <pyflame_rt/session.hpp>

#include "test/cxxapi/temporary_folder.h"

namespace pfrt_test {
namespace {

using namespace pyflame_rt;

TEST(SessionOptions, defaults_of_the_guide) {
  const SessionOptions options;
  EXPECT_EQ(options.device, "cpu");
  EXPECT_EQ(options.num_threads, 0);
  EXPECT_FALSE(options.enable_profiling);
  EXPECT_EQ(options.execution_mode, "sequential");
  EXPECT_EQ(options.optimization_level, OptLevel::Extended);
  EXPECT_FALSE(options.verbose_optimization);
  EXPECT_EQ(options.log_level, "warning");
  EXPECT_TRUE(options.providers.empty());
  EXPECT_EQ(options.deterministic, "threads");
  EXPECT_EQ(options.tune, "off");
  EXPECT_TRUE(options.validate().empty());
}

// With every field set, no key of the schema is left at its default: each has a field.
TEST(SessionOptions, have_a_field_for_every_key) {
  SessionOptions options;
  options.device = "wse2";
  options.num_threads = 3;
  options.enable_profiling = true;
  options.profile_file_prefix = "other";
  options.execution_mode = "parallel";
  options.optimization_level = OptLevel::All;
  options.verbose_optimization = true;
  options.log_level = "error";
  options.providers = {"wse", "cpu"};
  options.assign = "priority";
  options.skip_passes = {"fusion"};
  options.verify = true;
  options.precision = "auto";
  options.max_error = 0.5;
  options.node_precision = {"a=bf16"};
  options.deterministic = "batch";
  options.tune = "on";
  options.tune_budget_s = 7;
  options.tune_search = "model";
  options.tune_iterations = 7;
  options.tune_repeats = 7;
  options.cache_dir = "folder";
  options.fallback = false;
  options.enable_mem_reuse = false;
  options.enable_mem_pattern = false;
  options.halve_batch = false;
  options.strict_dimension_names = true;
  options.use_env_allocators = false;
  options.set_denormal_as_zero = true;
  options.image_max_pixels = 7;
  options.create_timeout_ms = 7;
  options.device_reopen_ms = 7;
  std::vector<std::string> faults;
  const auto handle = detail::to_c(options, &faults);
  EXPECT_TRUE(faults.empty()) << faults.front();
  const pfrt_options_api& table = *api().options;
  for (size_t i = 0; i < table.schema_count(PFRT_OPTIONS_SESSION); ++i) {
    pfrt_option_info row{};
    row.struct_size = sizeof row;
    ASSERT_EQ(table.schema_at(PFRT_OPTIONS_SESSION, i, &row), nullptr);
    pfrt_string text{};
    ASSERT_EQ(table.get_text(handle.get(), row.key, &text), nullptr);
    EXPECT_NE(std::string(text.data, text.size),
              std::string(row.default_value.data, row.default_value.size))
        << std::string(row.key.data, row.key.size);
  }
}

TEST(SessionOptions, levels_of_the_guide) {
  EXPECT_EQ(static_cast<int>(OptLevel::None), 0);
  EXPECT_EQ(static_cast<int>(OptLevel::Basic), 1);
  EXPECT_EQ(static_cast<int>(OptLevel::Extended), 2);
  EXPECT_EQ(static_cast<int>(OptLevel::All), 3);
}

TEST(SessionOptions, guide_values_are_valid) {
  SessionOptions options;
  options.enable_profiling = true;
  options.verbose_optimization = true;
  for (const char* level : {"debug", "info", "warning", "error"}) {
    options.log_level = level;
    EXPECT_TRUE(options.validate().empty()) << level;
  }
}

TEST(SessionOptions, execution_modes) {
  SessionOptions options;
  EXPECT_EQ(options.execution_mode, "sequential");
  options.execution_mode = "parallel";
  EXPECT_TRUE(options.validate().empty());
  options.execution_mode = "both";
  ASSERT_EQ(options.validate().size(), 1u);
  EXPECT_NE(options.validate()[0].find("this version knows sequential parallel"),
            std::string::npos);
}

// A device that the guide names and this version lacks is refused by name, never accepted and
// ignored.
TEST(SessionOptions, devices_are_those_that_providers_open) {
  SessionOptions options;
  for (const char* device : {"cpu", "wse", "wse2", "wse3"}) {
    options.device = device;
    EXPECT_TRUE(options.validate().empty()) << device << ": " << options.validate()[0];
  }
  options.device = "wse4";
  ASSERT_EQ(options.validate().size(), 1u);
  EXPECT_NE(options.validate()[0].find("wse4"), std::string::npos);
}

TEST(SessionOptions, validate_names_each_fault) {
  SessionOptions options;
  options.device = "toaster";
  options.num_threads = -2;
  options.execution_mode = "sideways";
  options.log_level = "loud";
  options.precision = "int1";
  options.tune = "later";
  options.optimization_level = static_cast<OptLevel>(9);
  options.extra["no.such.key"] = "1";
  const std::vector<std::string> faults = options.validate();
  EXPECT_EQ(faults.size(), 8u);
  std::string all;
  for (const std::string& fault : faults) all += fault + "\n";
  for (const char* word :
       {"toaster", "-2", "sideways", "loud", "int1", "later", "9", "no.such.key"})
    EXPECT_NE(all.find(word), std::string::npos) << word << " is not in:\n" << all;
}

TEST(SessionOptions, a_session_may_tune) {
  SessionOptions options;
  options.tune = "on";
  EXPECT_TRUE(options.validate().empty());
  const InferenceSession session(one_node("Relu", {{1}}), options);
  EXPECT_NO_THROW(session.run({}, {{"input", Tensor({1}, DType::Float32)}}));
}

TEST(SessionOptions, a_session_refuses_what_validate_refuses) {
  SessionOptions options;
  options.log_level = "loud";
  EXPECT_THROW(InferenceSession(one_node("Relu", {{1}}), options), InputError);
}

TEST(RunOptions, defaults_of_the_guide) {
  const RunOptions options;
  EXPECT_TRUE(options.tag.empty());
  EXPECT_TRUE(options.log_level.empty());
  EXPECT_EQ(options.timeout_ms, 0);
  EXPECT_EQ(options.num_threads, 0);
}

TEST(RunOptions, bad_fields_are_refused_by_the_run) {
  InferenceSession session(one_node("Relu", {{1}}));
  RunOptions options;
  options.log_level = "loud";
  EXPECT_THROW(session.run({}, {{"input", Tensor({1}, DType::Float32)}}, options), InputError);
  for (const char* level : {"debug", "info", "warning", "error", "off", ""}) {
    options.log_level = level;
    EXPECT_NO_THROW(session.run({}, {{"input", Tensor({1}, DType::Float32)}}, options)) << level;
  }
  options.timeout_ms = -1;
  EXPECT_THROW(session.run({}, {{"input", Tensor({1}, DType::Float32)}}, options), InputError);
}

TEST(RunOptions, a_copy_is_cancelled_on_its_own) {
  InferenceSession session(one_node("Relu", {{1}}));
  const std::unordered_map<std::string, Tensor> feed{{"input", Tensor({1}, DType::Float32)}};
  RunOptions options;
  options.tag = "a";
  const RunOptions copy = options;
  options.cancel();
  EXPECT_THROW(session.run({}, feed, options), BackendError);
  EXPECT_EQ(copy.tag, "a");
  EXPECT_NO_THROW(session.run({}, feed, copy));
  options.reset();
  EXPECT_NO_THROW(session.run({}, feed, options));
}

TEST(Options, an_observer_sees_what_a_run_does_not_return) {
  using Names = std::vector<std::string>;
  pyflame_rt::Graph graph("observed");
  graph.add_input(pyflame_rt::TensorInfo("x", {{-1}}, pyflame_rt::DType::Float32));
  graph.add_node(std::make_shared<pyflame_rt::Node>("n", "Neg", Names{"x"}, Names{"negative"}));
  graph.add_node(std::make_shared<pyflame_rt::Node>("a", "Abs", Names{"negative"}, Names{"y"}));
  graph.add_output(pyflame_rt::TensorInfo("y", {{-1}}, pyflame_rt::DType::Float32));
  pyflame_rt::SessionOptions session_options;
  session_options.extra_outputs = {"negative"};
  const pyflame_rt::InferenceSession session(graph, session_options);
  pyflame_rt::RunOptions options;
  Names seen;
  options.observer = [&](const std::string& name, const pyflame_rt::Tensor& value) {
    seen.push_back(name);
    EXPECT_EQ(value.data_ptr<float>()[0], -3);
  };
  const auto x = pyflame_rt::Tensor::from_vector<float>({3}, {1});
  EXPECT_EQ(session.run({"y"}, {{"x", x}}, options)[0].data_ptr<float>()[0], 3);
  EXPECT_EQ(seen, Names{"negative"});

  pyflame_rt::RunOptions throwing = options;
  throwing.observer = [](const std::string&, const pyflame_rt::Tensor&) {
    throw std::out_of_range("mine");
  };
  EXPECT_THROW(session.run({"y"}, {{"x", x}}, throwing), std::out_of_range);
  throwing.observer = nullptr;
  EXPECT_NO_THROW(session.run({"y"}, {{"x", x}}, throwing));
}

}  // namespace
}  // namespace pfrt_test
