// SPDX-License-Identifier: Apache-2.0
//
// States in C++: a session makes them, runs take them, and they are cloned, cut, and kept in files.
#include <gtest/gtest.h>

#include <pyflame_rt/pyflame_rt.hpp>

#include "test/cxxapi/temporary_folder.h"

namespace pyflame_rt {
namespace {

// present_0 = past_0 followed by x along axis 1; y = the sum of present_0 along it.
Graph cache() {
  Graph graph("cache");
  graph.add_input(TensorInfo("x", {{1, -1}}, DType::Float32));
  graph.add_input(TensorInfo("past_0", {{1, -1}}, DType::Float32));
  auto concat = std::make_shared<Node>("concat", "Concat", std::vector<std::string>{"past_0", "x"},
                                       std::vector<std::string>{"present_0"});
  concat->set_attr("axis", int64_t{1});
  graph.add_node(concat);
  auto sum = std::make_shared<Node>("sum", "ReduceSum", std::vector<std::string>{"present_0"},
                                    std::vector<std::string>{"y"});
  graph.add_node(sum);
  graph.add_output(TensorInfo("y", {{1, 1}}, DType::Float32));
  graph.add_output(TensorInfo("present_0", {{1, -1}}, DType::Float32));
  return graph;
}

float step(const InferenceSession& session, const RunOptions& options, float x) {
  const auto out = session.run({"y"}, {{"x", Tensor::from_vector<float>({x}, {1, 1})}}, options);
  return out[0].data_ptr<float>()[0];
}

TEST(CxxState, goes_from_run_to_run) {
  const InferenceSession session(cache());
  RunOptions options;
  options.state = session.create_state({{"past_0", "present_0", StateGrowth::Grows, 1, 16}});
  EXPECT_EQ(options.state.get("past_0").kind(), ValueKind::Unset);
  EXPECT_EQ(step(session, options, 1), 1);
  EXPECT_EQ(step(session, options, 2), 3);
  EXPECT_EQ(options.state.length(), 2);
  EXPECT_EQ(session.statistics().runs, 2u);

  const State copy = options.state.clone();
  EXPECT_EQ(step(session, options, 4), 7);
  options.state.truncate(1);
  EXPECT_EQ(step(session, options, 10), 11);
  RunOptions other;
  other.state = copy;
  EXPECT_EQ(step(session, other, 5), 8);
  EXPECT_EQ(copy.length(), 3) << "a copy of the object is the same state";

  copy.set("past_0", Tensor::from_vector<float>({20, 30}, {1, 2}));
  EXPECT_EQ(step(session, other, 1), 51);
  other.state = State();
  EXPECT_THROW(step(session, other, 1), InputError);
}

TEST(CxxState, is_kept_in_a_file) {
  const pfrt_test::TemporaryFolder folder;
  const InferenceSession session(cache());
  RunOptions options, other;
  options.state = session.create_state({{"past_0", "present_0", StateGrowth::Grows, 1}});
  other.state = session.create_state({{"past_0", "present_0", StateGrowth::Grows, 1}});
  step(session, options, 1);
  step(session, options, 2);
  options.state.save(folder.path() + "/state.pfm");
  other.state.load(folder.path() + "/state.pfm");
  EXPECT_EQ(step(session, other, 3), 6);
  EXPECT_THROW(other.state.load(folder.path() + "/none.pfm"), PyFlameRTError);
  EXPECT_EQ(other.state.length(), 3);
}

TEST(CxxState, is_kept_by_runs_that_only_read_it) {
  const InferenceSession session(cache());
  RunOptions options;
  options.state = session.create_state({{"past_0", "present_0", StateGrowth::Grows, 1}});
  EXPECT_EQ(step(session, options, 1), 1);
  RunOptions keeps = options;
  keeps.keeps_state = true;
  RunOptions copied(keeps);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(step(session, copied, 10), 11);
  EXPECT_EQ(options.state.length(), 1);
  EXPECT_EQ(step(session, options, 2), 3);
  keeps.state = State();
  EXPECT_THROW(step(session, keeps, 1), InvalidArgumentError);
}

TEST(CxxState, chooses_rows_and_goes_to_another_session) {
  const InferenceSession session(cache()), other(cache());
  const std::vector<StatePair> pairs = {{"past_0", "present_0", StateGrowth::Grows, 1}};
  RunOptions options;
  options.state = session.create_state(pairs);
  step(session, options, 5);
  EXPECT_EQ(session.memory_report().states, 4u);
  EXPECT_EQ(session.memory_report().device_states, 0u);
  const State clone = options.state.clone();
  EXPECT_EQ(session.memory_report().states, 4u);
  options.state.select_rows({0});
  EXPECT_THROW(options.state.select_rows({1}), InvalidArgumentError);
  EXPECT_THROW(options.state.select_rows({0, 0}), ShapeMismatchError) << "the batch is 1";

  RunOptions with_other;
  with_other.state = options.state.clone_for(other, pairs);
  EXPECT_EQ(step(other, with_other, 2), 7);
  EXPECT_EQ(step(session, options, 3), 8);
  EXPECT_THROW(options.state.clone_for(other, {{"past", "present_0"}}), NotFoundError);
  EXPECT_THROW(options.state.clone_for(other, {{"past_0", "present_0", StateGrowth::InPlace}}),
               InvalidArgumentError);

  with_other.state.set_outputs({{"present_0", Tensor::from_vector<float>({20, 30}, {1, 2})}});
  EXPECT_EQ(step(other, with_other, 1), 51);
  EXPECT_THROW(with_other.state.set_outputs({{"y", Tensor::from_vector<float>({1}, {1, 1})}}),
               NotFoundError);
}

TEST(CxxState, says_what_does_not_fit) {
  const InferenceSession session(cache());
  EXPECT_THROW(session.create_state({{"past", "present_0"}}), PyFlameRTError);
  EXPECT_THROW(session.create_state({{"past_0", "present_0", StateGrowth::Grows, 2}}),
               InvalidArgumentError);
  const State state = session.create_state({{"past_0", "present_0", StateGrowth::Replaced}});
  EXPECT_THROW(state.truncate(1), PyFlameRTError);
}

}  // namespace
}  // namespace pyflame_rt
