// SPDX-License-Identifier: Apache-2.0
//
// InferenceSession::run_async: futures and callbacks.
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <pyflame_rt/pyflame_rt.hpp>
#include <thread>

namespace pfrt_test {
namespace {

using namespace pyflame_rt;

std::unique_ptr<InferenceSession> relu_session() {
  Graph graph("g");
  graph.add_input({"x", {{2}}, DType::Float32});
  graph.add_output({"y", {{2}}, DType::Float32});
  graph.add_node(std::make_shared<Node>("n", "Relu", std::vector<std::string>{"x"},
                                        std::vector<std::string>{"y"}));
  return std::make_unique<InferenceSession>(graph);
}

Tensor filled(const std::vector<int64_t>& dims, float value) {
  Tensor tensor(dims, DType::Float32);
  tensor.fill(value);
  return tensor;
}

TEST(RunAsync, future_has_the_results) {
  auto session = relu_session();
  auto one = session->run_async({}, {{"x", filled({2}, 3)}});
  auto two = session->run_async({"y"}, {{"x", filled({2}, -3)}}, RunOptions());
  session.reset();  // the runs keep what they need
  EXPECT_EQ(one.get().at(0).data_ptr<float>()[1], 3.0f);
  EXPECT_EQ(two.get().at(0).data_ptr<float>()[1], 0.0f);
}

TEST(RunAsync, future_throws_what_run_would_have_thrown) {
  const auto session = relu_session();
  auto wrong = session->run_async({}, {{"x", filled({3}, 1)}});
  EXPECT_THROW(wrong.get(), ShapeMismatchError);
  auto options = std::make_unique<RunOptions>();
  options->cancel();
  auto cancelled = session->run_async({}, {{"x", filled({2}, 1)}}, *options);
  options = nullptr;  // the run keeps what it needs of them
  EXPECT_THROW(cancelled.get(), BackendError);
  RunOptions loud;
  loud.log_level = "loud";
  EXPECT_THROW((void)session->run_async({}, {{"x", filled({2}, 1)}}, loud), InputError);
  EXPECT_THROW((void)session->run_async({"z"}, {{"x", filled({2}, 1)}}), InputError);
}

TEST(RunAsync, callback_comes_once_and_may_release_the_session) {
  auto session = relu_session();
  std::promise<std::pair<float, std::thread::id>> came;
  session->run_async(
      {}, {{"x", filled({2}, 5)}}, [&](std::vector<Tensor> outputs, std::exception_ptr failure) {
        EXPECT_FALSE(failure);
        session.reset();
        came.set_value({outputs.at(0).data_ptr<float>()[0], std::this_thread::get_id()});
        throw std::runtime_error("lost");
      });
  const auto [value, thread] = came.get_future().get();
  EXPECT_EQ(value, 5.0f);
  EXPECT_NE(thread, std::this_thread::get_id());
  EXPECT_THROW(
      relu_session()->run_async({}, {{"x", filled({2}, 1)}}, InferenceSession::RunCallback()),
      InputError);
}

}  // namespace
}  // namespace pfrt_test
