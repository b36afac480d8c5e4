// SPDX-License-Identifier: Apache-2.0
//
// Operators of com.microsoft: the operators that they become, the shapes that are known, and the
// errors of malformed nodes. test/recorded and test/providers/cpu have their numbers.
#include <gtest/gtest.h>

#include <map>

#include "core/ir/verify.h"
#include "core/op/engine/canonicalise.h"
#include "test/core/op/dtypes.h"

namespace pfrt {
namespace {

// A graph of a single node of com.microsoft on inputs x0, x1, ... with outputs y0, y1, ...
struct Model {
  std::shared_ptr<Graph> graph = std::make_shared<Graph>("g");
  NodeId id = kNoId;

  Model(std::string op, const std::vector<In>& inputs, std::vector<Attribute> attrs = {},
        size_t outputs = 1, std::string domain = "com.microsoft") {
    graph->opsets[""] = 17;
    graph->opsets[domain] = 1;
    Node node;
    node.name = "it";
    node.op = std::move(op);
    node.domain = std::move(domain);
    node.attrs = std::move(attrs);
    for (const In& in : inputs) {
      node.inputs.push_back(kNoId);
      if (in.dtype == PFRT_DTYPE_UNSET) continue;
      const ValueId value = graph->value("x" + std::to_string(node.inputs.size() - 1));
      graph->at(value).type = Type::tensor(in.dtype, in.shape);
      graph->inputs.push_back(value);
      node.inputs.back() = value;
    }
    for (size_t i = 0; i < outputs; ++i)
      node.outputs.push_back(graph->value("y" + std::to_string(i)));
    graph->outputs = node.outputs;
    Result<NodeId> added = graph->add_node(std::move(node));
    EXPECT_TRUE(added.ok());
    id = added.ok() ? added.take() : kNoId;
  }
  Model& constant(size_t i, Result<Tensor> tensor) {
    const ValueId value = graph->node(id)->inputs[i];
    std::erase(graph->inputs, value);
    graph->set_constant(value, Value::of(tensor.take()));
    return *this;
  }
  // Returns the error of canonicalise; empty when it succeeds.
  std::string run() {
    const Status status = canonicalise(*graph);
    if (!status.ok()) return std::string(status.message());
    EXPECT_TRUE(verify(*graph).ok()) << verify(*graph).message();
    return {};
  }
  std::map<std::string, int> ops() const {
    std::map<std::string, int> out;
    for (const NodeId n : graph->node_ids()) {
      EXPECT_EQ(graph->node(n)->domain, "");
      ++out[graph->node(n)->op];
    }
    return out;
  }
  const Node* find(std::string_view op) const {
    for (const NodeId n : graph->node_ids())
      if (graph->node(n)->op == op) return graph->node(n);
    return nullptr;
  }
  std::string type(size_t i = 0) const {
    return type_text(graph->at(graph->find("y" + std::to_string(i))).type, *graph->symbols);
  }
  static Dim symbol(Model& m, const char* name) { return m.graph->symbols->symbol(name); }
};

using Ops = std::map<std::string, int>;
Attribute number(const char* name, int64_t value) { return Attribute::of_int(name, value); }
Attribute numbers(const char* name, std::vector<int64_t> values) {
  return Attribute::of_ints(name, std::move(values));
}
Attribute text(const char* name, const char* value) { return Attribute::of_string(name, value); }
Result<Tensor> scalar(pfrt_dtype dtype, uint8_t value) {
  return Tensor::copy_of(dtype, {}, &value);
}
Result<Tensor> scalar(float value) { return Tensor::copy_of(kFloat, {}, &value); }

TEST(Contrib, fused_conv_becomes_conv_sum_and_activation) {
  Model m("FusedConv", {{kFloat, {2, 3, 8, 8}}, {kFloat, {4, 3, 3, 3}}, {}, {kFloat, {2, 4, 6, 6}}},
          {text("activation", "Relu")});
  EXPECT_EQ(m.run(), "");
  EXPECT_EQ(m.ops(), (Ops{{"Conv", 1}, {"Add", 1}, {"Relu", 1}}));
  EXPECT_EQ(m.type(), "float32[2,4,6,6]");
  EXPECT_EQ(m.find("Conv")->attr("activation"), nullptr);
}

TEST(Contrib, matrices_become_gemm_and_batches_matmul) {
  Model matrices("FusedMatMul", {{kFloat, {3, 5}}, {kFloat, {4, 5}}},
                 {number("transB", 1), Attribute::of_float("alpha", 0.5f)});
  EXPECT_EQ(matrices.run(), "");
  EXPECT_EQ(matrices.ops(), (Ops{{"Gemm", 1}}));
  EXPECT_EQ(matrices.type(), "float32[3,4]");
  Model batches("FusedMatMul", {{kFloat, {2, 3, 5}}, {kFloat, {2, 4, 5}}}, {number("transB", 1)});
  EXPECT_EQ(batches.run(), "");
  EXPECT_EQ(batches.ops(), (Ops{{"Transpose", 1}, {"MatMul", 1}}));
  EXPECT_EQ(batches.type(), "float32[2,3,4]");
}

TEST(Contrib, channels_last_keeps_symbols) {
  Model m("NhwcMaxPool", {{kByte, {Dim(), 8, 8, 3}}}, {numbers("kernel_shape", {2, 2})});
  m.graph->at(m.graph->find("x0")).type.shape[0] = Model::symbol(m, "N");
  EXPECT_EQ(m.run(), "");
  EXPECT_EQ(m.ops(), (Ops{{"Transpose", 2}, {"MaxPool", 1}}));
  EXPECT_EQ(m.type(), "uint8[N,7,7,3]");
}

TEST(Contrib, concat_of_equal_parameters_does_not_compute) {
  Model m("QLinearConcat",
          {{kFloat, {}},
           {kByte, {}},
           {kByte, {2, 3}},
           {kFloat, {}},
           {kByte, {}},
           {kByte, {2, 4}},
           {kFloat, {}},
           {kByte, {}}},
          {number("axis", 1)});
  for (const size_t i : {0u, 3u}) m.constant(i, scalar(0.5f));
  m.constant(6, scalar(0.25f));
  for (const size_t i : {1u, 4u, 7u}) m.constant(i, scalar(kByte, 7));
  EXPECT_EQ(m.run(), "");
  EXPECT_EQ(m.ops(), (Ops{{"Concat", 1}, {"DequantizeLinear", 1}, {"QuantizeLinear", 1}}));
  EXPECT_EQ(m.type(), "uint8[2,7]");
}

TEST(Contrib, quantized_product_is_of_whole_numbers) {
  Model m("QGemm", {{kByte, {3, 8}},
                    {kFloat, {}},
                    {kByte, {}},
                    {kSigned, {8, 5}},
                    {kFloat, {5}},
                    {kSigned, {5}},
                    {kInt32, {5}},
                    {kFloat, {}},
                    {kByte, {}}});
  EXPECT_EQ(m.run(), "");
  EXPECT_EQ(m.ops()["MatMulInteger"], 1);
  EXPECT_EQ(m.ops()["QuantizeLinear"], 1);
  EXPECT_EQ(m.type(), "uint8[3,5]");
}

TEST(Contrib, unique_gives_its_outputs_in_another_order) {
  Model m("Unique", {{kFloat, {6}}}, {}, 3);
  EXPECT_EQ(m.run(), "");
  ASSERT_NE(m.find("Unique"), nullptr);
  EXPECT_FALSE(m.find("Unique")->has_output(1));
  EXPECT_EQ(m.type(1), "int64[?]");
}

TEST(Contrib, unfolded_windows_of_a_symbol) {
  Model m("UnfoldTensor", {{kFloat, {2, Dim()}}}, {number("size", 3), number("step", 1)});
  m.graph->at(m.graph->find("x0")).type.shape[1] = Model::symbol(m, "T");
  EXPECT_EQ(m.run(), "");
  const Type& type = m.graph->at(m.graph->find("y0")).type;
  ASSERT_EQ(type.shape.size(), 3u);
  EXPECT_TRUE(type.shape[0].is(2));
  EXPECT_TRUE(type.shape[2].is(3));
}

TEST(Contrib, kernels_of_their_own_have_shapes) {
  Model block("GatherBlockQuantized", {{kByte, {4, 16}}, {kInt64, {2, 3}}, {kFloat, {4, 2}}},
              {number("block_size", 16)});
  EXPECT_EQ(block.run(), "");
  EXPECT_EQ(block.type(), "float32[2,3,32]");
  Model lstm("DynamicQuantizeLSTM",
             {{kFloat, {5, 2, 3}},
              {kSigned, {1, 3, 16}},
              {kSigned, {1, 4, 16}},
              {},
              {},
              {},
              {},
              {},
              {kFloat, {1}},
              {kSigned, {1}},
              {kFloat, {1}},
              {kSigned, {1}}},
             {}, 3);
  EXPECT_EQ(lstm.run(), "");
  EXPECT_EQ(lstm.type(0), "float32[5,1,2,4]");
  EXPECT_EQ(lstm.type(2), "float32[1,2,4]");
}

struct Bad {
  const char* op;
  std::vector<In> inputs;
  std::vector<Attribute> attrs;
  const char* says;
};

TEST(Contrib, malformed_nodes_are_named_with_what_is_wrong) {
  const In image{kFloat, {1, 3, 8, 8}}, filter{kFloat, {4, 3, 3, 3}}, matrix{kFloat, {4, 4}},
      real{kFloat, {}}, byte{kByte, {}}, bytes{kByte, {2, 8, 8, 3}}, data{kByte, {4, 16}};
  const int64_t huge = int64_t{1} << 40;
  const std::vector<Bad> all = {
      {"FusedConv", {image, filter}, {text("activation", "Wobble")}, "'Wobble' is not known"},
      {"FusedConv", {image, filter}, {number("activation", 1)}, "'activation'"},
      {"FusedConv", {image, filter}, {text("activation", "Clip")}, "min and max"},
      {"FusedConv", {image, filter}, {numbers("pads", {-1, 0, 0, 0})}, "pads"},
      {"FusedConv", {image, filter}, {numbers("strides", {1})}, "strides"},
      {"FusedGemm", {matrix, matrix}, {text("activation_alpha", "x")}, "'activation_alpha'"},
      {"FusedGemm", {image, matrix}, {}, "rank 2"},
      {"FusedMatMul", {matrix, {kFloat, {5, 4}}}, {}, "do not multiply"},
      {"FusedMatMul", {matrix, matrix}, {text("transA", "x")}, "'transA'"},
      {"NhwcMaxPool", {bytes}, {}, "'kernel_shape'"},
      {"NhwcMaxPool", {{kByte, {8}}}, {numbers("kernel_shape", {2})}, "rank"},
      {"QLinearConv", {bytes, real, byte}, {}, "inputs"},
      {"QLinearAdd", {data, real, byte, data, real, byte}, {}, "input 6, a scale, is absent"},
      {"QLinearAdd", {data, real, byte, {kByte, {5, 3}}, real, byte, real, byte}, {}, "broadcast"},
      {"QLinearSoftmax", {data, real, byte, real, byte}, {number("opset", 99)}, "'opset'"},
      {"QLinearSoftmax", {data, real, byte, real, byte}, {number("axis", 7)}, "axis 7"},
      {"QLinearConcat", {real, byte, data, real}, {number("axis", 0)}, "three a tensor"},
      {"QLinearConcat", {real, byte, data, real, byte}, {number("axis", 5)}, "axis 5"},
      {"QLinearReduceMean", {data, real, byte, real, byte}, {numbers("axes", {4})}, "axis 4"},
      {"QLinearGlobalAveragePool", {{kByte, {4}}, real, byte, real, byte}, {}, "rank 1"},
      {"QGemm", {data, real, byte}, {}, "input 3"},
      {"QGemm", {bytes, real, byte, data, real, byte}, {}, "expected a matrix"},
      {"MatMulInteger16", {data, data}, {}, "uint8"},
      {"ExpandDims", {matrix, {kFloat, {}}}, {}, "axis is float32"},
      {"UnfoldTensor", {matrix}, {}, "'size'"},
      {"UnfoldTensor", {matrix}, {number("size", huge)}, "size"},
      {"UnfoldTensor", {matrix}, {number("size", 5)}, "fewer than the windows"},
      {"UnfoldTensor", {matrix}, {number("size", 2), number("step", 0)}, "step 0"},
      {"UnfoldTensor", {matrix}, {number("size", 2), number("dim", 3)}, "dim 3"},
      {"CDist", {matrix, matrix}, {text("metric", "yule")}, "'yule'"},
      {"CDist", {matrix, {kFloat, {4, 5}}}, {}, "lengths of the points"},
      {"Inverse", {{kFloat, {3, 4}}}, {}, "square"},
      {"NGramRepeatBlock", {{kInt64, {1, 4}}, {kFloat, {1, 9}}}, {}, "'ngram_size'"},
      {"NGramRepeatBlock",
       {{kInt64, {1, 4}}, {kFloat, {2, 9}}},
       {number("ngram_size", 2)},
       "batch"},
      {"MurmurHash3", {matrix}, {number("seed", -1)}, "'seed'"},
      {"CropAndResize",
       {image, {kFloat, {2, 4}}, {kInt32, {2}}, {kInt32, {2}}},
       {text("mode", "x")},
       "mode"},
      {"CropAndResize", {image, {kFloat, {2, 5}}, {kInt32, {2}}, {kInt32, {2}}}, {}, "input 1"},
      {"MatMulBnb4", {matrix, {kByte, {8}}, {kFloat, {1}}}, {number("K", 4)}, "'N'"},
      {"MatMulBnb4",
       {matrix, {kByte, {8}}, {kFloat, {1}}},
       {number("K", 4), number("N", huge), number("block_size", 16), number("quant_type", 1)},
       "'N'"},
      {"MatMulBnb4",
       {matrix, {kByte, {9}}, {kFloat, {1}}},
       {number("K", 4), number("N", 4), number("block_size", 16), number("quant_type", 1)},
       "input 1"},
      {"MatMulBnb4",
       {matrix, {kByte, {8}}, {kFloat, {1}}},
       {number("K", 4), number("N", 4), number("block_size", 17), number("quant_type", 1)},
       "'block_size'"},
      {"GatherBlockQuantized",
       {data, {kInt64, {2}}, {kFloat, {4, 3}}},
       {number("block_size", 16)},
       "input 2"},
      {"GatherBlockQuantized",
       {data, {kInt64, {2}}, {kFloat, {4, 2}}},
       {number("block_size", 8)},
       "block_size"},
      {"GatherBlockQuantized",
       {data, {kInt64, {2}}, {kFloat, {4, 2}}},
       {number("bits", 3)},
       "bits"},
      {"DynamicQuantizeLSTM", {image, data, data}, {}, "input 8"},
  };
  for (const Bad& bad : all) {
    Model m(bad.op, bad.inputs, bad.attrs);
    const std::string said = m.run();
    EXPECT_NE(said.find(bad.says), std::string::npos) << bad.op << ": " << said;
    EXPECT_NE(said.find("'it"), std::string::npos) << bad.op << ": " << said;
  }
}

TEST(Contrib, operators_that_are_not_there_are_refused_in_a_sentence) {
  const std::string words = Model("WordConvEmbedding", {{PFRT_DTYPE_INT32, {2, 2}}}).run();
  EXPECT_NE(words.find("WordConvEmbedding 'it' (com.microsoft opset 1): unknown"),
            std::string::npos)
      << words;
  const std::string blocked =
      Model("ReorderInput", {{kFloat, {1, 8, 4, 4}}}, {}, 1, "com.microsoft.nchwc").run();
  EXPECT_NE(blocked.find("before layout optimisation"), std::string::npos) << blocked;
}

}  // namespace
}  // namespace pfrt
