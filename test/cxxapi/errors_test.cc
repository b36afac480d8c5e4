// SPDX-License-Identifier: Apache-2.0
//
// Raises each exception type of the guide in a situation that causes it.
#include <gtest/gtest.h>

#include <filesystem>
#include <pyflame_rt/pyflame_rt.hpp>
#include <type_traits>

#include "test/cxxapi/temporary_folder.h"

namespace pfrt_test {
namespace {

using namespace pyflame_rt;

class Errors : public InTemporaryFolder {};

// Returns the exception of |call|, which must be exactly an |Error| with |word| in its message.
template <class Error, class Call>
Error thrown(const std::string& word, Call call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(typeid(error), typeid(Error)) << error.what();
    EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
    return error;
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another type: " << error.what();
  }
  ADD_FAILURE() << "nothing of the type was thrown";
  return Error("nothing");
}

TEST(ErrorTypes, hierarchy) {
  EXPECT_TRUE((std::is_base_of_v<std::runtime_error, PyFlameRTError>));
  EXPECT_TRUE((std::is_base_of_v<PyFlameRTError, InvalidModelError>));
  EXPECT_TRUE((std::is_base_of_v<PyFlameRTError, UnsupportedFormatError>));
  EXPECT_TRUE((std::is_base_of_v<PyFlameRTError, UnsupportedOperatorError>));
  EXPECT_TRUE((std::is_base_of_v<PyFlameRTError, ShapeMismatchError>));
  EXPECT_TRUE((std::is_base_of_v<PyFlameRTError, DTypeMismatchError>));
  EXPECT_TRUE((std::is_base_of_v<PyFlameRTError, ValidationError>));
  EXPECT_TRUE((std::is_base_of_v<PyFlameRTError, BackendError>));
  EXPECT_TRUE((std::is_base_of_v<PyFlameRTError, InputError>));
  EXPECT_TRUE((std::is_base_of_v<InputError, InvalidArgumentError>));
  EXPECT_TRUE((std::is_base_of_v<BackendError, CancelledError>));
  EXPECT_TRUE((std::is_base_of_v<BackendError, TimeoutError>));
  EXPECT_TRUE((std::is_base_of_v<PyFlameRTError, NotFoundError>));
  EXPECT_TRUE((std::is_base_of_v<NotFoundError, ModelNotFoundError>));
  EXPECT_TRUE((std::is_base_of_v<PyFlameRTError, UnsupportedError>));
  EXPECT_TRUE((std::is_base_of_v<PyFlameRTError, OutOfMemoryError>));
  EXPECT_TRUE((std::is_base_of_v<PyFlameRTError, DataError>));
}

TEST_F(Errors, a_missing_file) {
  const auto error =
      thrown<ModelNotFoundError>("absent.onnx", [] { InferenceSession session("absent.onnx"); });
  EXPECT_EQ(error.code(), static_cast<pfrt_code>(PFRT_CODE_NOT_FOUND));
  thrown<ModelNotFoundError>("absent.pfm", [] { (void)load_model("absent.pfm"); });
}

TEST_F(Errors, names_that_there_are_not) {
  SessionOptions options;
  options.providers = {"NoSuchExecutionProvider"};
  thrown<NotFoundError>("NoSuchExecutionProvider",
                        [&] { InferenceSession(one_node("Relu", {{1}}), options); });
  options = {};
  options.log_level = "loud";
  thrown<InvalidArgumentError>("loud", [&] { InferenceSession(one_node("Relu", {{1}}), options); });
}

TEST_F(Errors, files_that_cannot_be_written) {
  std::filesystem::create_directory("model.pfm");
  thrown<DataError>("model.pfm", [] { save_model(one_node("Relu", {{1}}), "model.pfm"); });
}

TEST_F(Errors, invalid_model) {
  write_file("broken.onnx", onnx_relu().substr(0, 60));
  thrown<InvalidModelError>("broken.onnx", [] { InferenceSession session("broken.onnx"); });
  save_model(one_node("Relu", {{4}}), "whole.pfm");
  const std::string bytes = read_file("whole.pfm");
  write_file("cut.pfm", bytes.substr(0, bytes.size() / 2));
  thrown<InvalidModelError>("cut.pfm", [] { InferenceSession session("cut.pfm"); });
}

TEST_F(Errors, unsupported_format) {
  write_file("model.xyz", "not a model at all");
  const auto error =
      thrown<UnsupportedFormatError>("model.xyz", [] { InferenceSession session("model.xyz"); });
  EXPECT_EQ(error.code(), static_cast<pfrt_code>(PFRT_CODE_UNSUPPORTED_FORMAT));
}

TEST_F(Errors, unsupported_operator) {
  Graph graph("exotic");
  graph.add_input({"x", {{1}}, DType::Float32});
  graph.add_output({"y", {{1}}, DType::Float32});
  graph.add_node(std::make_shared<Node>("n", "Frobnicate", std::vector<std::string>{"x"},
                                        std::vector<std::string>{"y"}, "com.example"));
  thrown<UnsupportedOperatorError>("Frobnicate", [&] { InferenceSession session(graph); });
}

TEST_F(Errors, shape_mismatch) {
  const InferenceSession session(one_node("Relu", {{2}, {3}}));
  thrown<ShapeMismatchError>("input", [&] {
    session.run({}, {{"input", Tensor({2, 4}, DType::Float32)}});
  });
  thrown<ShapeMismatchError>("input", [&] {
    session.run({}, {{"input", Tensor({6}, DType::Float32)}});
  });
  thrown<ShapeMismatchError>("reshape", [] { Tensor({6}, DType::Float32).reshape({5}); });
}

TEST_F(Errors, dtype_mismatch) {
  const InferenceSession session(one_node("Relu", {{2}, {3}}));
  thrown<DTypeMismatchError>("input", [&] {
    session.run({}, {{"input", Tensor({2, 3}, DType::Int32)}});
  });
  thrown<DTypeMismatchError>("float32", [] { Tensor({1}, DType::Float32).data_ptr<int64_t>(); });
}

TEST_F(Errors, validation) {
  Graph graph("faulty");
  graph.add_input({"x", {{1}}, DType::Float32});
  graph.add_output({"y", {{1}}, DType::Float32});
  graph.add_node(make_node("a", "Relu", {"nowhere"}, {"t"}));
  graph.add_node(make_node("b", "Add", {"t", "nothing"}, {"y"}));
  const auto error = thrown<ValidationError>("", [&] { save_model(graph, "faulty.pfm"); });
  ASSERT_EQ(error.errors().size(), 2u);
  EXPECT_NE(error.errors()[0].find("nowhere"), std::string::npos) << error.errors()[0];
  EXPECT_NE(error.errors()[1].find("nothing"), std::string::npos) << error.errors()[1];
  EXPECT_EQ(error.errors(), graph.validate());
  thrown<ValidationError>("", [&] { InferenceSession session(graph); });
}

TEST_F(Errors, a_cycle_is_a_validation_error) {
  Graph graph("cycle");
  graph.add_input({"x", {{1}}, DType::Float32});
  graph.add_output({"y", {{1}}, DType::Float32});
  graph.add_node(make_node("a", "Add", {"x", "y"}, {"t"}));
  graph.add_node(make_node("b", "Relu", {"t"}, {"y"}));
  EXPECT_FALSE(thrown<ValidationError>("", [&] { graph.topological_sort(); }).errors().empty());
  EXPECT_FALSE(graph.validate().empty());
}

TEST_F(Errors, backend) {
  // The graph is valid; only the run can see that the divisor is zero.
  Graph graph("divide");
  graph.add_input({"a", {{2}}, DType::Int32});
  graph.add_input({"b", {{2}}, DType::Int32});
  graph.add_output({"c", {{2}}, DType::Int32});
  graph.add_node(make_node("div_0", "Div", {"a", "b"}, {"c"}));
  const InferenceSession session(graph);
  Tensor a({2}, DType::Int32), b({2}, DType::Int32);
  EXPECT_THROW(session.run({}, {{"a", a}, {"b", b}}), PyFlameRTError);

  RunOptions cancelled;
  cancelled.cancel();
  b.fill(1);
  const auto error = thrown<CancelledError>("", [&] {
    session.run({}, {{"a", a}, {"b", b}}, cancelled);
  });
  EXPECT_EQ(error.code(), static_cast<pfrt_code>(PFRT_CODE_CANCELLED));
  SessionOptions options;
  options.providers = {"CPUExecutionProvider"};
  EXPECT_NO_THROW(InferenceSession(graph, options).run({}, {{"a", a}, {"b", b}}));
}

TEST_F(Errors, input) {
  const InferenceSession session(one_node("Relu", {{1}}));
  const Tensor data({1}, DType::Float32);
  thrown<InputError>("wrong_name", [&] { session.run({}, {{"wrong_name", data}}); });
  thrown<InputError>("input", [&] { session.run({}, {}); });
  thrown<InputError>("wrong_output", [&] { session.run({"wrong_output"}, {{"input", data}}); });
  thrown<InputError>("input", [&] { session.run({}, {{"input", Tensor()}}); });
}

TEST_F(Errors, objects_that_were_moved_from) {
  Graph graph("g");
  const Graph other = std::move(graph);
  thrown<InvalidArgumentError>("moved", [&] { (void)graph.name(); });  // NOLINT: that is the test
  InferenceSession session(one_node("Relu", {{1}}));
  const InferenceSession taken = std::move(session);
  thrown<InvalidArgumentError>("moved", [&] { session.run({}, {}); });
}

// Python makes the distinction too: a bad argument is another mistake than an input that a model
// lacks.
TEST_F(Errors, arguments) {
  thrown<InvalidArgumentError>("float31", [] { (void)dtype_from_name("float31"); });
  Graph graph = one_node("Relu", {{1}});
  thrown<InvalidArgumentError>("null", [&] { graph.add_node(nullptr); });
  thrown<NotFoundError>("not in this graph",
                        [&] { graph.remove_node(make_node("n", "Abs", {"a"}, {"b"})); });
  const CustomOp& op = CustomOpBuilder("PlainErrors").input("x").output("y").build();
  thrown<UnsupportedError>("gradient", [&] { op.gradient({}, {}); });
}

}  // namespace
}  // namespace pfrt_test
