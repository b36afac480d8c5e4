// SPDX-License-Identifier: Apache-2.0
//
// Questions and counters from C++, with the provider of test/plugins/verbs (the folder is named in
// recovery_test.cc).
#include <gtest/gtest.h>

#include <pyflame_rt/pyflame_rt.hpp>
#include <stdexcept>

namespace pyflame_rt {
namespace {

Question question(const std::string& verb) {
  Question q;
  q.provider = "verbs";
  q.verb = verb;
  return q;
}

Answer ask(const Question& q) { return Environment::instance().ask(q); }

TEST(CxxAsk, gives_text_and_tensors) {
  Question q = question("echo");
  q.request = "hello";
  q.tensors = {Tensor::from_vector<float>({1, 2}, {2})};
  const Answer answer = ask(q);
  EXPECT_EQ(answer.text, "hello.");
  ASSERT_EQ(answer.tensors.size(), 1u);
  EXPECT_EQ(answer.tensors[0].first, "t0");
  EXPECT_EQ(answer.tensors[0].second.data_ptr<float>()[1], 2);
}

TEST(CxxAsk, options_say_which_device) {
  Question q = question("who");
  q.device = "words";
  q.options["build"] = "5";
  EXPECT_EQ(ask(q).text, "verbs of words, build 5");
}

TEST(CxxAsk, failures_are_exceptions) {
  EXPECT_THROW((void)ask(question("dance")), UnsupportedError);
  EXPECT_THROW((void)ask(question("")), InvalidArgumentError);
  EXPECT_THROW((void)ask(question("throw")), PyFlameRTError);
  Question q = question("who");
  q.provider = "cpu";
  EXPECT_THROW((void)ask(q), UnsupportedError);
  q.provider = "nobody";
  EXPECT_THROW((void)ask(q), NotFoundError);
  q = question("wait");
  q.timeout_ms = 10;
  EXPECT_THROW((void)ask(q), TimeoutError);
}

TEST(CxxAsk, progress_stops_it) {
  Question q = question("wait");
  double last = -1;
  q.progress = [&](double fraction) {
    last = fraction;
    return fraction < 0.5;
  };
  EXPECT_THROW((void)ask(q), CancelledError);
  EXPECT_GE(last, 0.5);
  q.progress = [](double) -> bool { throw std::out_of_range("mine"); };
  EXPECT_THROW((void)ask(q), std::out_of_range);
}

TEST(CxxAsk, counters_are_in_the_explanation) {
  Graph graph("negation");
  graph.add_input(TensorInfo("x", {{2}}, DType::Float32));
  graph.add_node(std::make_shared<Node>("neg", "Neg", std::vector<std::string>{"x"},
                                        std::vector<std::string>{"y"}));
  graph.add_output(TensorInfo("y", {{2}}, DType::Float32));
  SessionOptions options;
  options.providers = {"VerbsExecutionProvider", "CPUExecutionProvider"};
  options.extra["assign"] = "priority";
  const InferenceSession session(graph, options);
  EXPECT_TRUE(session.explain().counters.empty());
  (void)session.run({}, {{"x", Tensor::from_vector<float>({1, -2}, {2})}});
  const std::vector<ExplainCounter> counters = session.explain().counters;
  ASSERT_EQ(counters.size(), 2u);
  EXPECT_EQ(counters[0].provider, "VerbsExecutionProvider");
  EXPECT_EQ(counters[0].name, "cycles");
  EXPECT_EQ(counters[0].unit, "cycles");
  EXPECT_EQ(counters[0].value, 40);
  EXPECT_EQ(counters[1].first_step, 0u);
  EXPECT_EQ(counters[1].step_count, 1u);
}

}  // namespace
}  // namespace pyflame_rt
