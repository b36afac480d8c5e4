// SPDX-License-Identifier: Apache-2.0
//
// Nodes that no model should have. Each is refused with a message that names the node and the
// fault, before memory is taken for it.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <limits>
#include <pyflame_rt/pyflame_rt.hpp>

#include "test/cxxapi/temporary_folder.h"

namespace pfrt_test {
namespace {

using namespace pyflame_rt;
using Ints = std::vector<int64_t>;

constexpr int64_t kLarge = int64_t{1} << 62;
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();

struct Malformed {
  const char* op;
  Ints shape;  // shape of input x, float32
  std::vector<std::pair<std::string, AttributeValue>> attrs;
  std::vector<Tensor> constants;  // the inputs after x, or all where x has no shape
  const char* names;              // text that the error has besides the node
};

Tensor ints(const Ints& values) {
  return Tensor::from_vector(values, {static_cast<int64_t>(values.size())});
}
Tensor scalar(int64_t value) { return Tensor::from_vector(Ints{value}, {}); }
Tensor zeros(const Ints& shape) {
  Tensor tensor(shape, DType::Float32);
  tensor.zero();
  return tensor;
}

std::vector<Malformed> cases() {
  const Ints image{2, 3, 8, 8};
  const Tensor weights = zeros({4, 3, 3, 3});
  return {
      {"Transpose", image, {{"perm", Ints{0, 0, 1, 2}}}, {}, "perm"},
      {"Transpose", image, {{"perm", Ints{0, 1, 2, 9}}}, {}, "perm"},
      {"Reshape", image, {}, {ints({-2, 4})}, "[-2,4]"},
      {"Reshape", image, {}, {ints({-1, -1})}, "-1 twice"},
      {"Reshape", image, {}, {ints({kLarge, kLarge})}, "more bytes than can be addressed"},
      {"Expand", {1, 1, 1}, {}, {ints({1 << 30, 1 << 30, 1 << 30})}, "more bytes than"},
      {"Expand", {1, 1, 1}, {}, {ints({1 << 20, 1 << 20, 4})}, "no memory left"},
      {"Expand", {1, 1, 1}, {}, {ints({-5, 1, 1})}, "negative"},
      {"Tile", {1, 2}, {}, {ints({kLarge, kLarge / 4})}, "more bytes than can be addressed"},
      {"Tile", {1, 2}, {}, {ints({1 << 20, 1 << 22})}, "no memory left"},
      {"Tile", {1, 2}, {}, {ints({-1, 2})}, "negative"},
      {"Pad", {1, 2}, {}, {ints({0, kLarge, 0, kLarge})}, "pads"},
      {"Pad", {1, 2}, {}, {ints({kLeast, 0, 0, 0})}, "padding"},
      {"Pad", {1, 2}, {{"mode", std::string("weird")}}, {ints({0, 1, 0, 1})}, "weird"},
      {"ConstantOfShape", {}, {}, {ints({-1, 2})}, "negative"},
      {"ConstantOfShape", {}, {}, {ints({1ll << 40, 1ll << 40})}, "more bytes than"},
      {"ConstantOfShape", {}, {}, {ints({1ll << 44})}, "no memory left"},
      {"Range", {}, {}, {scalar(0), scalar(kMost), scalar(1)}, "more bytes than"},
      {"Range", {}, {}, {scalar(0), scalar(7), scalar(0)}, "delta"},
      {"Conv", image, {{"kernel_shape", Ints{0, 0}}}, {weights}, "kernel_shape"},
      {"Conv", image, {{"kernel_shape", Ints{5, 5}}}, {weights}, "kernel_shape"},
      {"Conv", image, {{"strides", Ints{0, 1}}}, {weights}, "strides"},
      {"Conv", image, {{"strides", Ints{1}}}, {weights}, "strides"},
      {"Conv", image, {{"pads", Ints(4, kLarge)}}, {weights}, "pads"},
      {"Conv", image, {{"pads", Ints(4, -3)}}, {weights}, "pads"},
      {"Conv", image, {{"dilations", Ints{kLarge, 1}}}, {weights}, "dilations"},
      {"Conv", image, {{"group", int64_t{7}}}, {weights}, "group"},
      {"Conv", image, {{"group", int64_t{0}}}, {weights}, "group"},
      {"Conv", image, {{"auto_pad", std::string("SAMEISH")}}, {weights}, "auto_pad"},
      {"ConvTranspose",
       image,
       {{"output_padding", Ints{kLarge, 0}}},
       {zeros({3, 4, 3, 3})},
       "output_padding"},
      {"ConvTranspose",
       image,
       {{"output_shape", Ints{-4, 2}}},
       {zeros({3, 4, 3, 3})},
       "output_shape"},
      {"MaxPool", image, {}, {}, "kernel_shape"},
      {"MaxPool", image, {{"kernel_shape", Ints{kLarge, 2}}}, {}, "kernel_shape"},
      {"AveragePool", image, {{"kernel_shape", Ints{0, 2}}}, {}, "kernel_shape"},
      {"LpPool", image, {{"kernel_shape", Ints{2, 2}}, {"p", int64_t{0}}}, {}, "p is 0"},
      {"LRN", image, {{"size", int64_t{0}}}, {}, "size"},
      {"Concat", image, {{"axis", int64_t{7}}}, {}, "axis 7"},
      {"Gather", image, {{"axis", int64_t{-9}}}, {ints({0})}, "axis -9"},
      {"Gather", image, {{"axis", int64_t{0}}}, {ints({77})}, "index 77"},
      {"GatherND",
       image,
       {{"batch_dims", int64_t{9}}},
       {Tensor::from_vector(Ints{0}, {1, 1})},
       "batch_dims"},
      {"ScatterND",
       image,
       {},
       {Tensor::from_vector(Ints{9}, {1, 1}), zeros({1, 3, 8, 8})},
       "index 9"},
      {"ReduceSum", image, {}, {ints({9})}, "axis 9"},
      {"ReduceSum", image, {}, {ints({1, 1})}, "axis 1 is given twice"},
      {"Squeeze", image, {}, {ints({1})}, "dimension 1"},
      {"Unsqueeze", image, {}, {ints({99})}, "axis 99"},
      {"Unsqueeze", image, {}, {ints({1, 1})}, "axis 1 is given twice"},
      {"DepthToSpace", image, {{"blocksize", int64_t{5}}}, {}, "multiple of 25"},
      {"DepthToSpace", image, {{"blocksize", int64_t{0}}}, {}, "blocksize"},
      {"SpaceToDepth", image, {{"blocksize", kLarge}}, {}, "blocksize"},
      {"Cast", image, {{"to", int64_t{99}}}, {}, "'to'"},
      {"EyeLike", {2, 2}, {{"dtype", int64_t{99}}}, {}, "'dtype'"},
      {"LSTM",
       {2, 1, 3},
       {{"hidden_size", int64_t{-3}}},
       {zeros({1, 16, 3}), zeros({1, 16, 4})},
       "hidden_size"},
      {"LSTM",
       {2, 1, 3},
       {{"hidden_size", kLarge}},
       {zeros({1, 16, 3}), zeros({1, 16, 4})},
       "hidden_size"},
      {"Einsum", {2, 3}, {{"equation", std::string("ij->k")}}, {}, "equation"},
      {"Flatten", image, {{"axis", int64_t{9}}}, {}, "axis 9"},
      {"Softmax", image, {{"axis", int64_t{9}}}, {}, "axis 9"},
      {"Softmax", image, {{"axis", std::string("one")}}, {}, "'axis'"},
      {"Slice", image, {}, {ints({0}), ints({1}), ints({0}), ints({0})}, "step"},
      {"Slice", image, {}, {ints({0, 0}), ints({1})}, "starts"},
      {"MatMul", {2, 3}, {}, {zeros({4, 5})}, "do not multiply"},
      {"BatchNormalization",
       image,
       {},
       {zeros({5}), zeros({3}), zeros({3}), zeros({3})},
       "input 1 has shape [5]"},
      {"Clip", image, {}, {zeros({2})}, "one element"},
      {"Resize", image, {}, {Tensor({0}, DType::Float32), zeros({4})}, "scale"},
      {"Resize",
       image,
       {},
       {Tensor({0}, DType::Float32), Tensor({0}, DType::Float32), ints({1, 1, -4, 5})},
       "size 2 is -4"},
      {"TopK", image, {}, {ints({-1})}, "k is -1"},
      {"Cast",
       image,
       {{"to", int64_t{24}}, {"round_mode", std::string("sideways")}},
       {},
       "'round_mode' is 'sideways'"},
      {"Cast", image, {{"to", int64_t{17}}, {"saturate", std::string("yes")}}, {}, "'saturate'"},
      {"QuantizeLinear", image, {{"block_size", int64_t{-2}}}, {zeros({2, 3, 8, 4})}, "block_size"},
      {"QuantizeLinear", image, {{"output_dtype", int64_t{8}}}, {zeros({})}, "string"},
      {"Resize",
       image,
       {{"mode", std::string("quartic")}},
       {Tensor({0}, DType::Float32), zeros({4})},
       "'mode' is 'quartic'"},
      {"Resize",
       image,
       {{"nearest_mode", std::string("up")}},
       {Tensor({0}, DType::Float32), zeros({4})},
       "'nearest_mode' is 'up'"},
      {"GridSample",
       image,
       {{"padding_mode", std::string("stars")}},
       {zeros({2, 4, 4, 2})},
       "'padding_mode' is 'stars'"},
      {"RNN",
       {2, 1, 3},
       {{"activations", std::vector<std::string>{"Wave"}}},
       {zeros({1, 4, 3}), zeros({1, 4, 4})},
       "activation 'Wave'"},
      {"GroupNormalization",
       image,
       {{"num_groups", int64_t{2}}},
       {zeros({3}), zeros({3})},
       "2 groups"},
      {"HannWindow", {}, {}, {scalar(-3)}, "size is -3"},
      {"HannWindow", {}, {}, {scalar(1ll << 44)}, "no memory left"},
      {"MelWeightMatrix",
       {},
       {},
       {scalar(-1), scalar(16), scalar(8000), zeros({}), zeros({})},
       "num_mel_bins is -1"},
      {"DFT", {2, 8, 1}, {}, {scalar(-4)}, "dft_length is -4"},
      {"DFT", {2, 8, 1}, {}, {scalar(kMost)}, "dft_length"},
      {"DFT", {2, 8, 3}, {}, {}, "last dimension is 3"},
      {"DFT", {2, 8, 1}, {}, {scalar(8), scalar(2)}, "axis 2"},
      {"STFT", {1, 8, 1}, {}, {scalar(0)}, "frame_step is 0"},
      {"STFT", {1, 8, 1}, {}, {scalar(1), zeros({9})}, "shorter than a frame"},
      {"RandomNormal", {}, {{"shape", Ints{kLarge, 4}}}, {}, "'shape'"},
      {"RandomUniform", {}, {{"shape", Ints{-1}}}, {}, "'shape'"},
      {"Multinomial", {2, 3}, {{"sample_size", int64_t{-1}}}, {}, "sample_size"},
      {"SoftmaxCrossEntropyLoss",
       {2, 3},
       {{"reduction", std::string("most")}},
       {ints({0, 1})},
       "'reduction'"},
      {"NegativeLogLikelihoodLoss", {2, 3}, {}, {ints({0, 9})}, "label 9"},
      {"DeformConv",
       image,
       {{"offset_group", int64_t{0}}},
       {weights, zeros({2, 18, 6, 6})},
       "offset_group is 0"},
      {"DeformConv", image, {}, {weights, zeros({2, 17, 6, 6})}, "input 2"},
      {"Det", {2, 3}, {}, {}, "square"},
      {"RoiAlign",
       image,
       {{"output_height", int64_t{0}}},
       {zeros({1, 4}), ints({0})},
       "output of a region"},
      {"RoiAlign", image, {}, {zeros({1, 4}), ints({7})}, "region 0"},
      {"MaxRoiPool", image, {{"pooled_shape", Ints{2}}}, {zeros({1, 5})}, "pooled_shape"},
      {"Col2Im", {1, 9, 4}, {{"strides", Ints{0, 1}}}, {ints({4, 4}), ints({3, 3})}, "strides"},
      {"Col2Im", {1, 9, 4}, {}, {ints({4, 4}), ints({0, 3})}, "block_shape"},
  };
}

// Loads and runs the node; returns the error, or nothing.
std::string error_of(const Malformed& c) {
  Graph graph("malformed");
  std::vector<std::string> inputs;
  if (!c.shape.empty()) {
    graph.add_input({"x", Shape(c.shape.begin(), c.shape.end()), DType::Float32});
    inputs.emplace_back("x");
  }
  for (size_t i = 0; i < c.constants.size(); ++i) {
    inputs.push_back("c" + std::to_string(i));
    graph.add_initializer(inputs.back(), c.constants[i]);
  }
  const std::vector<std::string> outputs = std::string(c.op) == "TopK"
                                               ? std::vector<std::string>{"y", "z"}
                                               : std::vector<std::string>{"y"};
  const auto node = make_node("the_node", c.op, inputs, outputs);
  for (const auto& [name, value] : c.attrs)
    std::visit([&n = name, &node](const auto& v) { node->set_attr(n, v); }, value);
  graph.add_node(node);
  graph.add_output({"y", {}, DType::Float32});
  try {
    const InferenceSession session(graph);
    std::unordered_map<std::string, Tensor> feed;
    if (!c.shape.empty()) feed.emplace("x", zeros(c.shape));
    (void)session.run({}, feed);
  } catch (const PyFlameRTError& error) {
    return error.what();
  }
  return {};
}

long peak_kib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

TEST(Malformed, nodes_are_refused_by_name_before_memory_is_taken) {
  const long before = peak_kib();
  for (const Malformed& c : cases()) {
    const std::string error = error_of(c);
    EXPECT_NE(error.find("the_node"), std::string::npos) << c.op << ": '" << error << "'";
    EXPECT_NE(error.find(c.names), std::string::npos) << c.op << ": '" << error << "'";
  }
  EXPECT_LT(peak_kib() - before, 256 << 10);
}

}  // namespace
}  // namespace pfrt_test
