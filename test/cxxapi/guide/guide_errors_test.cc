// SPDX-License-Identifier: Apache-2.0
//
// The guide's chapters on errors, in C++: the exceptions that each handler gets.
#include <gtest/gtest.h>

#include <pyflame_rt/pyflame_rt.hpp>

#include "test/cxxapi/temporary_folder.h"

namespace pfrt_test {
namespace {

using namespace pyflame_rt;

using GuideErrors = InTemporaryFolder;

// "Error Handling", first snippet.
std::string open_session(const std::string& path) {
  try {
    InferenceSession session(path);
  } catch (const InvalidModelError& e) {
    return std::string("Invalid model: ") + e.what();
  } catch (const UnsupportedFormatError& e) {
    return std::string("Unsupported format: ") + e.what();
  } catch (const PyFlameRTError& e) {
    return std::string("Runtime error: ") + e.what();
  }
  return "opened";
}

TEST_F(GuideErrors, opening_a_session) {
  save_model(one_node("Relu", {{1}, {10}}), "model.pfm");
  EXPECT_EQ(open_session("model.pfm"), "opened");
  write_file("cut.pfm", read_file("model.pfm").substr(0, 40));
  EXPECT_EQ(open_session("cut.pfm").rfind("Invalid model: ", 0), 0u) << open_session("cut.pfm");
  write_file("model.xyz", "words");
  EXPECT_EQ(open_session("model.xyz").rfind("Unsupported format: ", 0), 0u);
  EXPECT_EQ(open_session("absent.pfm").rfind("Runtime error: ", 0), 0u);
}

// "Error Handling", second snippet.
std::string run_session(const InferenceSession& session, const std::string& name,
                        const Tensor& data) {
  try {
    auto results = session.run({}, {{name, data}});
  } catch (const InputError& e) {
    return std::string("Input error: ") + e.what();
  } catch (const ShapeMismatchError& e) {
    return std::string("Shape mismatch: ") + e.what();
  } catch (const DTypeMismatchError& e) {
    return std::string("DType mismatch: ") + e.what();
  }
  return "ran";
}

TEST_F(GuideErrors, running_a_session) {
  const InferenceSession session(one_node("Relu", {{1}, {10}}));
  const Tensor data({1, 10}, DType::Float32);
  EXPECT_EQ(run_session(session, "input", data), "ran");
  EXPECT_NE(run_session(session, "wrong_name", data).find("Input error: "), std::string::npos);
  EXPECT_NE(run_session(session, "wrong_name", data).find("wrong_name"), std::string::npos);
  const std::string shape = run_session(session, "input", Tensor({1, 11}, DType::Float32));
  EXPECT_EQ(shape.rfind("Shape mismatch: ", 0), 0u) << shape;
  EXPECT_NE(shape.find("[1,10]"), std::string::npos) << shape;
  EXPECT_NE(shape.find("[1,11]"), std::string::npos) << shape;
  const std::string dtype = run_session(session, "input", Tensor({1, 10}, DType::Int64));
  EXPECT_EQ(dtype.rfind("DType mismatch: ", 0), 0u) << dtype;
}

// "Import Error Handling".
std::string import(const std::string& path) {
  try {
    InferenceSession session(path);
  } catch (const InvalidModelError& e) {
    return std::string("Model file is invalid: ") + e.what();
  } catch (const UnsupportedFormatError& e) {
    return std::string("Format not supported: ") + e.what();
  } catch (const UnsupportedOperatorError& e) {
    return std::string("Operator not supported: ") + e.what();
  } catch (const ValidationError& e) {
    return std::string("Graph validation failed: ") + e.what();
  }
  return "imported";
}

TEST_F(GuideErrors, importing_a_model) {
  write_file("model.onnx", onnx_relu());
  EXPECT_EQ(import("model.onnx"), "imported");
  std::string odd = onnx_relu();
  odd.replace(odd.find("Relu", odd.find("relu_0")), 4, "Ruel");
  write_file("odd.onnx", odd);
  const std::string text = import("odd.onnx");
  EXPECT_EQ(text.rfind("Operator not supported: ", 0), 0u) << text;
  EXPECT_NE(text.find("Ruel"), std::string::npos) << text;
  std::string dangling = onnx_relu();
  dangling.replace(dangling.find("input"), 5, "inpux");
  write_file("dangling.onnx", dangling);
  EXPECT_EQ(import("dangling.onnx").rfind("Graph validation failed: ", 0), 0u)
      << import("dangling.onnx");
  write_file("cut.onnx", onnx_relu().substr(0, 30));
  EXPECT_EQ(import("cut.onnx").rfind("Model file is invalid: ", 0), 0u);
}

// "Graph Validation": it happens on load, and the exception has every fault.
TEST_F(GuideErrors, validation_happens_on_load) {
  std::string bytes = onnx_relu();
  bytes.replace(bytes.find("input"), 5, "inpux");
  write_file("faulty.onnx", bytes);
  size_t errors = 0;
  try {
    InferenceSession session("faulty.onnx");
  } catch (const ValidationError& e) {
    for (const auto& error : e.errors()) {
      ++errors;
      EXPECT_NE(error.find("inpux"), std::string::npos) << error;
    }
  }
  EXPECT_EQ(errors, 1u);
}

}  // namespace
}  // namespace pfrt_test
