// SPDX-License-Identifier: Apache-2.0
//
// Recovery as C++ shows it: states, options of a provider, and the exception without fallback.
#include <gtest/gtest.h>

#include <cstdlib>
#include <pyflame_rt/pyflame_rt.hpp>

namespace pyflame_rt {
namespace {

// The process reads the variable when it makes its environment, which is later than this.
[[maybe_unused]] const int path_is_set = setenv(
    "PFRT_PLUGIN_PATH",
    PFRT_FAULT_PLUGINS ":" PFRT_DEVICE_PLUGINS ":" PFRT_VERBS_PLUGINS ":" PFRT_TEST_IMPORTERS, 1);

Graph negation() {
  Graph graph("negation");
  graph.add_input(TensorInfo("x", {{2}}, DType::Float32));
  graph.add_node(std::make_shared<Node>("neg", "Neg", std::vector<std::string>{"x"},
                                        std::vector<std::string>{"y"}));
  graph.add_output(TensorInfo("y", {{2}}, DType::Float32));
  return graph;
}

SessionOptions failing_in(const std::string& stage) {
  SessionOptions options;
  options.providers = {"FaultExecutionProvider", "CPUExecutionProvider"};
  options.extra["provider.fault.stage"] = stage;
  return options;
}

TEST(CxxRecovery, states_say_who_failed_and_why) {
  InferenceSession session(negation(), failing_in("run"));
  std::vector<ProviderState> states = session.provider_states();
  ASSERT_EQ(states.size(), 2u);
  EXPECT_EQ(states[0].name, "FaultExecutionProvider");
  EXPECT_EQ(states[0].condition, ProviderCondition::Active);
  EXPECT_EQ(states[0].failures, 0u);
  EXPECT_EQ(session.get_providers().size(), 2u);
  const auto out = session.run({}, {{"x", Tensor::from_vector<float>({1, -2}, {2})}});
  EXPECT_EQ(out[0].data_ptr<float>()[1], 2.0f);
  states = session.provider_states();
  EXPECT_EQ(states[0].condition, ProviderCondition::Failed);
  EXPECT_EQ(states[0].code, uint32_t{PFRT_CODE_PROVIDER});
  EXPECT_EQ(states[0].failures, 1u);
  EXPECT_NE(states[0].reason.find("injected fault in run"), std::string::npos);
  EXPECT_EQ(states[1].condition, ProviderCondition::Active);
  EXPECT_EQ(session.get_providers(), std::vector<std::string>{"CPUExecutionProvider"});
}

TEST(CxxRecovery, readmits_a_provider) {
  InferenceSession session(negation(), failing_in("run"));
  for (uint32_t failures : {1u, 2u}) {
    const auto out = session.run({}, {{"x", Tensor::from_vector<float>({1, -2}, {2})}});
    EXPECT_EQ(out[0].data_ptr<float>()[1], 2.0f);
    EXPECT_EQ(session.provider_states()[0].condition, ProviderCondition::Failed);
    EXPECT_EQ(session.provider_states()[0].failures, failures);
    RunOptions options;
    options.cancel();
    EXPECT_THROW(session.readmit("FaultExecutionProvider", options), CancelledError);
    EXPECT_EQ(session.provider_states()[0].condition, ProviderCondition::Failed);
    options.reset();
    session.readmit("FaultExecutionProvider", options);
    EXPECT_EQ(session.provider_states()[0].condition, ProviderCondition::Recovered);
  }
  EXPECT_THROW(session.readmit("Nobody"), NotFoundError);
}

TEST(CxxRecovery, without_fallback_it_is_a_backend_error) {
  SessionOptions options = failing_in("run");
  options.fallback = false;
  InferenceSession session(negation(), options);
  EXPECT_THROW(session.run({}, {{"x", Tensor::from_vector<float>({1, -2}, {2})}}), BackendError);
  EXPECT_EQ(session.provider_states()[0].condition, ProviderCondition::Failing);
}

TEST(CxxRecovery, options_of_a_provider_are_listed_and_checked) {
  const auto options = Environment::instance().provider_options("FaultExecutionProvider");
  ASSERT_FALSE(options.empty());
  EXPECT_EQ(options[0].key, "provider.fault.stage");
  EXPECT_NE(options[0].choices.find("specialise"), std::string::npos);
  EXPECT_THROW(InferenceSession(negation(), failing_in("never")), InputError);
}

}  // namespace
}  // namespace pyflame_rt
