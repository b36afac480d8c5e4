// SPDX-License-Identifier: Apache-2.0
//
// Operators of transformers before any run: shapes with symbols, the operators that com.microsoft's
// become, and the errors of impossible nodes.
#include <gtest/gtest.h>

#include "core/ir/verify.h"
#include "core/op/engine/canonicalise.h"
#include "test/core/op/dtypes.h"

namespace pfrt {
namespace {

constexpr char kMs[] = "com.microsoft";

// A graph of a single node; an input without a type is absent.
class Transformer : public testing::Test {
 protected:
  Transformer() { graph->opsets = {{"", 25}, {kMs, 1}, {"ai.onnx.preview", 1}}; }
  Dim symbol(const char* name) { return graph->symbols->symbol(name); }
  void input(const std::string& name, pfrt_dtype dtype, Shape shape) {
    const ValueId id = graph->value(name);
    graph->at(id).type = Type::tensor(dtype, std::move(shape));
    graph->inputs.push_back(id);
  }
  Status run(const std::string& domain, const std::string& op,
             const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
             std::vector<Attribute> attrs = {}) {
    Node n;
    n.domain = domain, n.op = op, n.name = "node", n.attrs = std::move(attrs);
    for (const auto& name : inputs) n.inputs.push_back(graph->value(name));
    for (const auto& name : outputs) n.outputs.push_back(graph->value(name));
    EXPECT_TRUE(graph->add_node(std::move(n)).ok());
    for (const auto& name : outputs)
      if (!name.empty()) graph->outputs.push_back(graph->find(name));
    Status status = canonicalise(*graph);
    if (status.ok()) {
      EXPECT_TRUE(verify(*graph).ok()) << verify(*graph).message();
    }
    return status;
  }
  std::string type(const std::string& name) const {
    return type_text(graph->at(graph->find(name)).type, *graph->symbols);
  }
  size_t count(const std::string& op) const {
    size_t found = 0;
    for (NodeId id : graph->node_ids()) found += graph->node(id)->op == op;
    return found;
  }
  static Attribute heads(const char* name, int64_t n) { return Attribute::of_int(name, n); }

  std::shared_ptr<Graph> graph = std::make_shared<Graph>("g");
};

void expect_said(const Status& status, const std::string& what) {
  ASSERT_FALSE(status.ok());
  std::string text(status.message());
  for (const Status& child : status.children()) text += child.message();
  EXPECT_NE(text.find(what), std::string::npos) << text;
}

TEST_F(Transformer, attention_keeps_the_symbols_of_its_inputs) {
  const Dim n = symbol("N"), s = symbol("S"), p = symbol("P");
  input("q", kFloat, {n, s, 24});
  input("k", kFloat, {n, s, 12});
  input("v", kFloat, {n, s, 20});
  input("pk", kFloat, {n, 2, p, 6});
  input("pv", kFloat, {n, 2, p, 10});
  const Status status =
      run("", "Attention", {"q", "k", "v", "", "pk", "pv"}, {"y", "k1", "v1", "qk"},
          {heads("q_num_heads", 4), heads("kv_num_heads", 2)});
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(type("y"), "float32[N,S,40]");
  const Dim total = graph->symbols->add(p, s);
  EXPECT_EQ(type("k1"), type_text(Type::tensor(kFloat, {n, 2, total, 6}), *graph->symbols));
  EXPECT_EQ(type("v1"), type_text(Type::tensor(kFloat, {n, 2, total, 10}), *graph->symbols));
  EXPECT_EQ(type("qk"), type_text(Type::tensor(kFloat, {n, 4, s, total}), *graph->symbols));
}

TEST_F(Transformer, a_past_makes_present_outputs_that_nobody_asked_for) {
  for (const char* name : {"q", "k", "v", "pk", "pv"}) input(name, kFloat, {1, 2, 3, 4});
  const Status status = run("", "Attention", {"q", "k", "v", "", "pk", "pv"}, {"y"});
  ASSERT_TRUE(status.ok()) << status.message();
  for (NodeId id : graph->node_ids()) EXPECT_EQ(graph->node(id)->outputs.size(), 3u);
}

struct Wrong {
  std::vector<Attribute> attrs;
  Shape mask;
  const char* says;
};

TEST(TransformerFaults, attention_says_what_is_wrong) {
  const std::vector<Wrong> all = {
      {{Attribute::of_int("qk_matmul_output_mode", 4)}, {3, 3}, "qk_matmul_output_mode"},
      {{Attribute::of_int("left_window_size", -2)}, {3, 3}, "left_window_size"},
      {{Attribute::of_int("right_window_size", INT64_MIN)}, {3, 3}, "right_window_size"},
      {{Attribute::of_float("softcap", -1)}, {3, 3}, "softcap"},
      {{Attribute::of_int("softmax_precision", 7)}, {3, 3}, "softmax_precision"},
      {{Attribute::of_int("is_causal", 0)}, {2, 4}, "does not broadcast"},
      {{Attribute::of_int("is_causal", 0)}, {1, 1, 1, 3, 3}, "does not broadcast"},
      {{Attribute::of_int("q_num_heads", 2)}, {3, 3}, "q_num_heads"},
      {{Attribute::of_float("is_causal", 1)}, {3, 3}, "is_causal"},
  };
  for (const Wrong& wrong : all) {
    struct One : Transformer {
      void TestBody() override {}
      Status of(const Wrong& w) {
        for (const char* name : {"q", "k", "v"}) input(name, kFloat, {1, 2, 3, 4});
        input("mask", kFloat, w.mask);
        return run("", "Attention", {"q", "k", "v", "mask"}, {"y"}, w.attrs);
      }
    } one;
    expect_said(one.of(wrong), wrong.says);
  }
}

TEST_F(Transformer, head_counts_beyond_reason_are_refused_before_any_product) {
  for (const char* name : {"q", "k", "v"}) input(name, kFloat, {1, 2, 0});
  expect_said(run("", "Attention", {"q", "k", "v"}, {"y"},
                  {heads("q_num_heads", INT64_MAX), heads("kv_num_heads", 1)}),
              "q_num_heads");
}

TEST_F(Transformer, rotary_needs_pairs) {
  input("x", kFloat, {1, 2, 3, 5});
  input("c", kFloat, {1, 3, 2});
  input("s", kFloat, {1, 3, 2});
  expect_said(run("", "RotaryEmbedding", {"x", "c", "s"}, {"y"}), "odd");
}

TEST_F(Transformer, microsoft_attention_becomes_a_product_and_an_attention) {
  const Dim n = symbol("N"), s = symbol("S");
  input("x", kFloat, {n, s, 8});
  input("w", kFloat, {8, 24});
  input("b", kFloat, {24});
  input("mask", kInt32, {n, symbol("T")});
  input("past", kFloat, {2, n, 2, symbol("P"), 4});
  const Status status = run(kMs, "Attention", {"x", "w", "b", "mask", "past"}, {"y", "present"},
                            {heads("num_heads", 2), Attribute::of_int("unidirectional", 1)});
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(count("Attention"), 1u);
  EXPECT_EQ(count("MatMul"), 1u);
  EXPECT_EQ(type("y"), "float32[N,S,8]");
  EXPECT_EQ(type("present").substr(0, 13), "float32[2,N,2");
  for (NodeId id : graph->node_ids()) EXPECT_EQ(graph->node(id)->domain, "");
}

TEST_F(Transformer, skip_normalisation_hands_its_sum_over) {
  for (const char* name : {"x", "skip", "bias"}) input(name, kFloat, {symbol("N"), 3, 8});
  input("gamma", kFloat, {8});
  const Status status =
      run(kMs, "SkipLayerNormalization", {"x", "skip", "gamma", "", "bias"}, {"y", "", "", "sum"});
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(count("Add"), 2u);
  EXPECT_EQ(count("LayerNormalization"), 1u);
  EXPECT_EQ(type("y"), "float32[N,3,8]");
  EXPECT_EQ(type("sum"), "float32[N,3,8]");
}

TEST_F(Transformer, what_is_for_devices_or_whole_decoders_says_what_to_do) {
  input("x", kInt32, {1, 2});
  expect_said(run(kMs, "BeamSearch", {"x"}, {"y"}), "call it once a token");
}

TEST_F(Transformer, packed_attention_is_refused) {
  input("x", kFloat, {4, 8});
  expect_said(run(kMs, "PackedAttention", {"x"}, {"y"}), "MultiHeadAttention");
}

TEST_F(Transformer, microsoft_attention_without_heads_names_the_attribute) {
  input("x", kFloat, {1, 2, 8});
  input("w", kFloat, {8, 24});
  expect_said(run(kMs, "Attention", {"x", "w"}, {"y"}), "num_heads");
}

TEST_F(Transformer, linear_attention_needs_the_inputs_of_its_rule) {
  for (const char* name : {"q", "k", "v"}) input(name, kFloat, {1, 2, 4});
  graph->opsets[""] = 27;
  expect_said(run("", "LinearAttention", {"q", "k", "v"}, {"y", "s"},
                  {heads("q_num_heads", 1), heads("kv_num_heads", 1),
                   Attribute::of_string("update_rule", "delta")}),
              "beta");
}

TEST_F(Transformer, group_query_attention_keeps_the_larger_of_room_and_total) {
  const Dim n = symbol("N");
  input("q", kFloat, {n, 1, 32});
  for (const char* name : {"k", "v"}) input(name, kFloat, {n, 1, 16});
  for (const char* name : {"pk", "pv"}) input(name, kFloat, {n, 2, 5, 8});
  input("lengths", kInt32, {n});
  const int32_t total = 7;
  Result<Tensor> seven = Tensor::copy_of(kInt32, {}, &total);
  ASSERT_TRUE(seven.ok());
  graph->set_constant(graph->value("total"), Value::of(seven.take()));
  const Status status =
      run(kMs, "GroupQueryAttention", {"q", "k", "v", "pk", "pv", "lengths", "total"},
          {"y", "k1", "v1"}, {heads("num_heads", 4), heads("kv_num_heads", 2)});
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(type("y"), "float32[N,1,32]");
  EXPECT_EQ(type("k1"), "float32[N,2,7,8]");
}

TEST_F(Transformer, tensor_scatter_of_the_batch_is_refused) {
  input("cache", kFloat, {2, 4, 3});
  input("update", kFloat, {2, 1, 3});
  input("at", kInt64, {2});
  expect_said(
      run("", "TensorScatter", {"cache", "update", "at"}, {"y"}, {Attribute::of_int("axis", 0)}),
      "axis");
}

}  // namespace
}  // namespace pfrt
