// SPDX-License-Identifier: Apache-2.0
//
// Small models, as bytes of ONNX files, that together touch most of the runtime: one has layers
// with initializers, one control flow, sequences and strings, one convolutions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "test/onnx_writer.h"

namespace pfrt_models {

// Returns |count| numbers in [-1, 1), equal in every program.
inline std::vector<float> numbers(size_t count, uint32_t seed) {
  std::vector<float> out(count);
  for (float& f : out) {
    seed = seed * 1664525u + 1013904223u;
    f = static_cast<float>(seed >> 8) * (1.0f / 8388608.0f) - 1.0f;
  }
  return out;
}

inline onnx_writer::Message weights(const char* name, const std::vector<int64_t>& dims,
                                    uint32_t seed) {
  size_t count = 1;
  for (int64_t d : dims) count *= static_cast<size_t>(d);
  return onnx_writer::tensor(name, onnx_writer::kFloat, dims,
                             onnx_writer::raw_bytes(numbers(count, seed)));
}

// y float32[1,5] = Softmax(Gemm(Flatten(MaxPool(Relu(Conv(x)))))), with x float32[1,3,8,8].
inline std::string layers() {
  using namespace onnx_writer;
  Graph g;
  g.inputs = {value_info("x", kFloat, {1, 3, 8, 8})};
  g.outputs = {value_info("y", kFloat, {1, 5})};
  g.initializers = {weights("w", {4, 3, 3, 3}, 1), weights("b", {4}, 2), weights("m", {5, 64}, 3),
                    weights("c", {5}, 4)};
  g.nodes = {
      node("Conv", {"x", "w", "b"}, {"conv"}, {ints_attribute("pads", {1, 1, 1, 1})}),
      node("Relu", {"conv"}, {"relu"}),
      node("MaxPool", {"relu"}, {"pool"},
           {ints_attribute("kernel_shape", {2, 2}), ints_attribute("strides", {2, 2})}),
      node("Flatten", {"pool"}, {"flat"}),
      node("Gemm", {"flat", "m", "c"}, {"gemm"}, {int_attribute("transB", 1)}),
      node("Softmax", {"gemm"}, {"y"}, {int_attribute("axis", 1)}),
  };
  return model(g).bytes();
}

// y float32[1,16,1,1], the means of convolutions of x float32[1,16,24,24], which are large enough
// for work to be divided in more than one way.
inline std::string divided() {
  using namespace onnx_writer;
  Graph g;
  g.inputs = {value_info("x", kFloat, {1, 16, 24, 24})};
  g.outputs = {value_info("y", kFloat, {1, 16, 1, 1})};
  g.initializers = {weights("v", {48, 16, 3, 3}, 1), weights("w", {16, 48, 3, 3}, 2)};
  g.nodes = {
      node("Conv", {"x", "v"}, {"a"}, {ints_attribute("pads", {1, 1, 1, 1})}),
      node("Conv", {"a", "w"}, {"b"}, {ints_attribute("pads", {1, 1, 1, 1})}),
      node("GlobalAveragePool", {"b"}, {"y"}),
  };
  return model(g).bytes();
}

// Takes words string[2] and gives texts string[M], by acme.Repeat, whose constant says how often it
// repeats each word, and acme.Mark, whose attribute it puts behind each.
inline std::string registered() {
  using namespace onnx_writer;
  Graph g;
  g.inputs = {value_info("words", kString, {2})};
  g.outputs = {value_info("texts", kString, {-1})};
  g.initializers = {tensor("times", kInt64, {1}, raw_bytes(std::vector<int64_t>{3}))};
  g.nodes = {
      node("Repeat", {"words", "times"}, {"many"}, {}, "n1", "acme"),
      node("Mark", {"many"}, {"texts"}, {string_attribute("mark", "!")}, "n2", "acme"),
  };
  return model(g, {{"", 17}, {"acme", 1}}).bytes();
}

// Takes x float32[N,3], flag bool[] and words string[2]: chosen = flag ? x + x : x * x, y is chosen
// above x, n the number of pieces, and small the words in lower case.
inline std::string control() {
  using namespace onnx_writer;
  const auto branch = [](const char* op, const char* out) {
    Graph g;
    g.name = out;
    g.nodes = {node(op, {"x", "x"}, {out})};
    g.outputs = {value_info(out, kFloat, {-1, 3})};
    return g.message();
  };
  Graph g;
  g.inputs = {value_info("x", kFloat, {-1, 3}), value_info("flag", kBool, {}),
              value_info("words", kString, {2})};
  g.outputs = {value_info("y", kFloat, {-1, 3}), value_info("n", kInt64, {}),
               value_info("small", kString, {2})};
  g.nodes = {
      node("If", {"flag"}, {"chosen"},
           {graph_attribute("then_branch", branch("Add", "sum")),
            graph_attribute("else_branch", branch("Mul", "product"))}),
      node("SequenceConstruct", {"chosen", "x"}, {"pieces"}),
      node("SequenceLength", {"pieces"}, {"n"}),
      node("ConcatFromSequence", {"pieces"}, {"y"}, {int_attribute("axis", 0)}),
      node("StringNormalizer", {"words"}, {"small"},
           {string_attribute("case_change_action", "LOWER")}),
  };
  return model(g).bytes();
}

}  // namespace pfrt_models
