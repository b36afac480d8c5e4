// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "test/core/pass/graphs.h"

namespace pfrt::test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kLowest = -3.4028234663852886e38;
const std::vector<std::map<std::string, int64_t>> kAttentionShapes = {
    {{"b", 1}, {"s", 5}, {"p", 3}}, {{"b", 3}, {"s", 4}, {"p", 2}}};

std::string transposed(PassGraph& g, const std::string& x, std::vector<int64_t> order) {
  return g.node("Transpose", {x}, {perm(std::move(order))});
}

// Returns dimension |i| of |x| as int64 [1], as PyTorch exports it.
std::string size(PassGraph& g, const std::string& x, int64_t i) {
  const std::string one = g.node("Gather", {g.node("Shape", {x}), g.ints({i})});
  return g.node("Reshape", {one, g.ints({1})});
}

std::string concat(PassGraph& g, const std::vector<std::string>& parts, int64_t axis = 0) {
  return g.node("Concat", parts, {Attribute::of_int("axis", axis)});
}

// Makes [b, heads, s, 4], or the order that |order| gives, of [b, s, heads x 4].
std::string by_head(PassGraph& g, const std::string& x, int64_t heads,
                    std::vector<int64_t> order = {0, 2, 1, 3}) {
  const std::string shape = concat(g, {size(g, x, 0), size(g, x, 1), g.ints({heads}), g.ints({4})});
  return transposed(g, g.node("Reshape", {x, shape}), std::move(order));
}

std::string joined(PassGraph& g, const std::string& y, int64_t width) {
  const std::string rows = transposed(g, y, {0, 2, 1, 3});
  const std::string shape = concat(g, {size(g, rows, 0), size(g, rows, 1), g.ints({width})});
  return g.node("Reshape", {rows, shape});
}

std::string projected(PassGraph& g, const std::string& x, int64_t columns = 8) {
  return g.node("Add", {g.weights({columns}), g.node("MatMul", {x, g.weights({8, columns})})});
}

std::string softmax(PassGraph& g, const std::string& x) {
  return g.node("Softmax", {x}, {Attribute::of_int("axis", -1)});
}

// BERT's attention over [b, s, 8] with two heads.
std::string self_attention(PassGraph& g, const std::string& x, const std::string& mask) {
  const std::string q = by_head(g, projected(g, x), 2);
  const std::string kt = by_head(g, projected(g, x), 2, {0, 2, 3, 1});
  const std::string v = by_head(g, projected(g, x), 2);
  std::string scores = g.node("Div", {g.node("MatMul", {q, kt}), g.constant({2})});
  if (!mask.empty()) scores = g.node("Add", {scores, mask});
  return joined(g, g.node("MatMul", {softmax(g, scores), v}), 8);
}

std::string padding_mask(PassGraph& g) {
  const std::string mask = g.input("mask", {"b", "s"}, PFRT_DTYPE_INT64);
  const std::string wide = g.node("Unsqueeze", {mask, g.ints({1, 2})});
  const std::string ones = g.node("Cast", {wide}, {Attribute::of_int("to", 1)});
  return g.node("Mul", {g.node("Sub", {g.constant({1}), ones}), g.constant({-10000})});
}

TEST(RaiseAttention, bert_reads_slices_of_one_product) {
  PassGraph g;
  g.output(self_attention(g, g.input("x", {"b", "s", "8"}), padding_mask(g)));
  const std::string ops = g.optimised(kAttentionShapes);
  EXPECT_NE(ops.find("MatMul, Add, Split, Attention"), std::string::npos) << ops;
  EXPECT_EQ(ops.find("Softmax"), std::string::npos) << ops;
  EXPECT_EQ(ops.find("Transpose"), std::string::npos) << ops;
  const Node* attention = g.find("Attention");
  ASSERT_NE(attention, nullptr);
  EXPECT_EQ(attention->attr_int("q_num_heads", 0), 2);
  EXPECT_EQ(attention->attr_int("kv_num_heads", 0), 2);
  EXPECT_FLOAT_EQ(attention->attr_float("scale", 0), 0.5f);
  EXPECT_EQ(attention->inputs.size(), 4u);
}

// Queries, keys and values by head as inputs.
struct Heads {
  std::string q, k, v;
};
Heads heads(PassGraph& g) {
  return {g.input("q", {"b", "2", "s", "4"}), g.input("k", {"b", "2", "s", "4"}),
          g.input("v", {"b", "2", "s", "4"})};
}
std::string scores_of(PassGraph& g, const Heads& h) {
  return g.node("MatMul", {h.q, transposed(g, h.k, {0, 1, 3, 2})});
}
std::string weighted(PassGraph& g, const Heads& h, const std::string& scores) {
  return g.node("MatMul", {softmax(g, scores), h.v});
}

TEST(RaiseAttention, scale_on_either_side_of_the_product) {
  PassGraph g;
  const Heads h = heads(g);
  const std::string q = g.node("Mul", {h.q, g.constant({0.5})});
  const std::string kt = g.node("Mul", {transposed(g, h.k, {0, 1, 3, 2}), g.constant({0.8})});
  g.output(weighted(g, h, g.node("Mul", {g.constant({2}), g.node("MatMul", {q, kt})})));
  ASSERT_EQ(g.optimised(kAttentionShapes), "Attention");
  EXPECT_FLOAT_EQ(g.find("Attention")->attr_float("scale", 0), 0.8f);
}

TEST(RaiseAttention, softmax_by_hand) {
  PassGraph g;
  const Heads h = heads(g);
  const std::string scores = scores_of(g, h);
  const std::vector<Attribute> last = {Attribute::of_ints("axes", {-1})};
  const std::string power =
      g.node("Exp", {g.node("Sub", {scores, g.node("ReduceMax", {scores}, last)})});
  const std::string sum = g.node("ReduceSum", {power, g.ints({-1})});
  g.output(g.node("MatMul", {g.node("Div", {power, sum}), h.v}));
  ASSERT_EQ(g.optimised(kAttentionShapes), "Attention");
}

TEST(RaiseAttention, keys_that_no_transpose_makes_get_one) {
  PassGraph g;
  const Heads h = heads(g);
  const std::string kt = g.input("kt", {"b", "2", "4", "s"});
  g.output(weighted(g, h, g.node("MatMul", {h.q, kt})));
  EXPECT_EQ(g.optimised(kAttentionShapes), "Transpose, Attention");
}

TEST(RaiseAttention, batches_of_one_head) {
  PassGraph g;
  const Heads h = {g.input("q", {"b", "s", "4"}), g.input("k", {"b", "p", "4"}),
                   g.input("v", {"b", "p", "6"})};
  const std::string scores = g.node("MatMul", {h.q, transposed(g, h.k, {0, 2, 1})});
  g.output(weighted(g, h, g.node("Add", {scores, g.input("bias", {"b", "s", "p"})})));
  EXPECT_EQ(g.optimised(kAttentionShapes), "ReduceMax, Sub, Add, Unsqueeze, Attention");
}

TEST(RaiseAttention, bias_of_positions_and_a_mask) {
  PassGraph g;
  const Heads h = heads(g);
  const std::string biased =
      g.node("Add", {scores_of(g, h), g.input("bias", {"1", "2", "s", "s"})});
  g.output(weighted(g, h, g.node("Add", {biased, g.input("mask", {"b", "1", "1", "s"})})));
  EXPECT_EQ(g.optimised(kAttentionShapes), "Add, ReduceMax, Sub, Add, Attention");
}

TEST(RaiseAttention, conditions_with_minus_infinity_become_numbers) {
  PassGraph g;
  const Heads h = heads(g);
  const std::string keep = g.input("keep", {"b", "1", "s", "s"}, PFRT_DTYPE_BOOL);
  const std::string diagonal = g.node("EyeLike", {g.input("like", {"s", "s"})},
                                      {Attribute::of_int("dtype", PFRT_DTYPE_BOOL)});
  const std::string some = g.node("Or", {keep, diagonal});
  g.output(weighted(g, h, g.node("Where", {some, scores_of(g, h), g.constant({-kInf})})));
  EXPECT_EQ(g.optimised(kAttentionShapes), "EyeLike, Or, Where, ReduceMax, Sub, Add, Attention");
}

// Only a run can tell whether a query sees no key. Its result is then NaN, as without the operator.
TEST(RaiseAttention, a_query_without_keys_is_nan) {
  for (const bool adds : {false, true}) {
    PassGraph g;
    const Heads h = heads(g);
    const std::string keep =
        g.node("Less", {g.input("bias", {"b", "1", "s", "s"}), g.constant({adds ? 0.0 : -1e9})});
    const std::string mask = g.node("Where", {keep, g.constant({0}), g.constant({-kInf})});
    const std::string masked = adds ? g.node("Add", {scores_of(g, h), mask})
                                    : g.node("Where", {keep, scores_of(g, h), g.constant({-kInf})});
    g.output(weighted(g, h, masked));
    EXPECT_NE(g.optimised(kAttentionShapes).find("ReduceMax, Sub, Add, Attention"),
              std::string::npos);
  }
}

// A test for NaN behind the softmax gives such a query zeros.
TEST(RaiseAttention, a_mask_of_bool_with_a_test_for_nan) {
  PassGraph g;
  const Heads h = heads(g);
  const std::string keep = g.input("keep", {"b", "1", "s", "s"}, PFRT_DTYPE_BOOL);
  const std::string weights =
      softmax(g, g.node("Where", {keep, scores_of(g, h), g.constant({-kInf})}));
  const std::string safe = g.node("Where", {g.node("IsNaN", {weights}), g.constant({0}), weights});
  g.output(g.node("MatMul", {safe, h.v}));
  EXPECT_EQ(g.optimised(kAttentionShapes), "Attention");
}

TEST(RaiseAttention, conditions_with_the_lowest_number_become_numbers) {
  PassGraph g;
  const Heads h = heads(g);
  const std::string keep = g.input("keep", {"b", "1", "s", "s"}, PFRT_DTYPE_BOOL);
  const std::string filled = g.node("Where", {keep, scores_of(g, h), g.constant({kLowest})});
  g.output(weighted(g, h, filled));
  EXPECT_EQ(g.optimised(kAttentionShapes), "Where, Attention");
}

Tensor lower_triangle(int64_t n) {
  auto made = Tensor::allocate(PFRT_DTYPE_BOOL, {1, 1, n, n});
  for (int64_t i = 0; i < n * n; ++i) made->as<uint8_t>()[i] = i % n <= i / n;
  return *made;
}

TEST(RaiseAttention, a_constant_triangle_is_causal) {
  for (const bool adds : {false, true}) {
    PassGraph g;
    const Heads h = {g.input("q", {"b", "2", "5", "4"}), g.input("k", {"b", "2", "5", "4"}),
                     g.input("v", {"b", "2", "5", "4"})};
    std::vector<double> bias(25, 0);
    for (size_t i = 0; i < 25; ++i)
      if (i % 5 > i / 5) bias[i] = kLowest;
    const std::string scores = scores_of(g, h);
    const std::string keep = g.constant_of(lower_triangle(5));
    g.output(weighted(g, h,
                      adds ? g.node("Add", {scores, g.constant(bias, {5, 5})})
                           : g.node("Where", {keep, scores, g.constant({-10000})})));
    ASSERT_EQ(g.optimised(kAttentionShapes), "Attention");
    EXPECT_EQ(g.find("Attention")->attr_int("is_causal", 0), 1);
    EXPECT_EQ(g.find("Attention")->inputs.size(), 3u);
  }
}

// The last key's score is not finite, and only a run can tell which queries see it.
TEST(RaiseAttention, hidden_scores_that_are_not_finite) {
  const std::vector<std::vector<double>> last_keys = {
      {NAN, 0, 0, 0}, {kInf, 0, 0, 0}, {-kInf, 1, 0, 0}, {1e37, 1e37, 1e37, 1e37}, {9, 9, 9, 9}};
  for (const int64_t n : {3, 5, 40}) {
    for (const std::vector<double>& last : last_keys) {
      for (int form = 0; form < 7; ++form) {
        PassGraph g;
        const std::string size = std::to_string(n);
        Heads h = {g.input("q", {"b", "2", size, "4"}), g.input("k", {"b", "2", size, "4"}),
                   g.input("v", {"b", "2", size, "4"})};
        auto is_last = Tensor::allocate(PFRT_DTYPE_BOOL, {n, 1});
        for (int64_t i = 0; i < n; ++i) is_last->as<uint8_t>()[i] = i == n - 1;
        h.k = g.node("Where", {g.constant_of(*is_last), g.constant(last, {4}), h.k});
        std::vector<double> bias(static_cast<size_t>(n * n), 0);
        for (size_t i = 0; i < bias.size(); ++i)
          if (i % static_cast<size_t>(n) > i / static_cast<size_t>(n)) bias[i] = -kInf;
        const std::string scores = scores_of(g, h);
        const std::string triangle = g.constant_of(lower_triangle(n));
        const std::string keep =
            form == 0 ? "" : g.input("keep", {"b", "1", size, size}, PFRT_DTYPE_BOOL);
        const std::string fill = g.constant({form == 3 ? kLowest : -kInf});
        std::string masked;
        if (form == 0) masked = g.node("Add", {scores, g.constant(bias, {n, n})});
        if (form == 1) masked = g.node("Where", {triangle, scores, fill});
        if (form >= 2 && form < 5) masked = g.node("Where", {keep, scores, fill});
        if (form >= 5)
          masked = g.node("Add", {scores, g.node("Where", {keep, g.constant({0}), fill})});
        std::string weights = softmax(g, masked);
        if (form == 4 || form == 6)
          weights = g.node("Where", {g.node("IsNaN", {weights}), g.constant({0}), weights});
        g.output(g.node("MatMul", {weights, h.v}));
        const std::string left = g.optimised({{{"b", 2}}});
        EXPECT_NE(left.find("Attention"), std::string::npos)
            << left << ": form " << form << ", " << n << " keys, the last from " << last[0];
      }
    }
  }
}

TEST(RaiseAttention, keys_of_the_past) {
  PassGraph g;
  const std::string x = g.input("x", {"b", "s", "8"});
  const std::string q = by_head(g, projected(g, x), 2);
  const std::string k =
      concat(g, {g.input("past_k", {"b", "2", "p", "4"}), by_head(g, projected(g, x), 2)}, -2);
  const std::string v =
      concat(g, {g.input("past_v", {"b", "2", "p", "4"}), by_head(g, projected(g, x), 2)}, -2);
  const std::string scores = g.node("MatMul", {q, transposed(g, k, {0, 1, 3, 2})});
  g.output(joined(g, g.node("MatMul", {softmax(g, scores), v}), 8));
  g.output(k);
  g.output(v);
  ASSERT_EQ(g.optimised(kAttentionShapes), "MatMul, Add, Split, Attention");
  EXPECT_EQ(g.find("Attention")->outputs.size(), 3u);
}

std::string repeated(PassGraph& g, const std::string& x, int64_t heads, int64_t times) {
  const std::string apart = g.node("Unsqueeze", {x, g.ints({2})});
  const std::string wide =
      concat(g, {size(g, x, 0), g.ints({heads}), g.ints({times}), size(g, x, 2), g.ints({4})});
  const std::string flat =
      concat(g, {size(g, x, 0), g.ints({heads * times}), size(g, x, 2), g.ints({4})});
  return g.node("Reshape", {g.node("Expand", {apart, wide}), flat});
}

TEST(RaiseAttention, grouped_queries) {
  PassGraph g;
  const std::string x = g.input("x", {"b", "s", "8"});
  const std::string q = by_head(g, projected(g, x, 24), 6);
  const std::string k = repeated(g, by_head(g, projected(g, x), 2), 2, 3);
  const std::string v = repeated(g, by_head(g, projected(g, x), 2), 2, 3);
  const std::string scores = g.node("MatMul", {q, transposed(g, k, {0, 1, 3, 2})});
  g.output(joined(g, g.node("MatMul", {softmax(g, scores), v}), 24));
  ASSERT_EQ(g.optimised(kAttentionShapes), "MatMul, Add, Split, Attention");
  EXPECT_EQ(g.find("Attention")->attr_int("q_num_heads", 0), 6);
  EXPECT_EQ(g.find("Attention")->attr_int("kv_num_heads", 0), 2);
}

TEST(RaiseAttention, one_head_of_keys_for_all) {
  PassGraph g;
  const std::string q = g.input("q", {"b", "2", "s", "4"}), k = g.input("k", {"b", "1", "s", "4"});
  g.output(weighted(g, {q, k, k}, scores_of(g, {q, k, k})));
  ASSERT_EQ(g.optimised(kAttentionShapes), "Attention");
}

// ------------------------------------------------------------------------------- what stays as is

void expect_softmax(PassGraph& g) {
  const std::string ops = g.optimised(kAttentionShapes);
  EXPECT_NE(ops.find("Softmax"), std::string::npos) << ops;
  EXPECT_EQ(g.applied("Attention"), 0u);
}

TEST(RaiseAttention, declines_where_the_weights_are_wanted) {
  PassGraph g;
  const Heads h = heads(g);
  const std::string weights = softmax(g, scores_of(g, h));
  g.output(g.node("MatMul", {weights, h.v}));
  g.output(weights);
  expect_softmax(g);
}

TEST(RaiseAttention, declines_a_mask_that_widens_or_has_one_key) {
  for (const char* keys : {"1", "p"}) {
    PassGraph g;
    const Heads h = heads(g);
    g.output(weighted(g, h, g.node("Add", {scores_of(g, h), g.input("m", {"b", "1", "1", keys})})));
    if (keys[0] == 'p') {
      EXPECT_NE(g.optimised({{{"b", 2}, {"s", 3}, {"p", 3}}}).find("Softmax"), std::string::npos);
    } else {
      expect_softmax(g);
    }
  }
  PassGraph g;
  const Heads h = {g.input("q", {"1", "2", "s", "4"}), g.input("k", {"1", "2", "s", "4"}),
                   g.input("v", {"1", "2", "s", "4"})};
  g.output(weighted(g, h, g.node("Add", {scores_of(g, h), g.input("m", {"b", "1", "s", "s"})})));
  expect_softmax(g);
}

TEST(RaiseAttention, declines_another_axis_and_a_scale_after_the_mask) {
  {
    PassGraph g;
    const Heads h = heads(g);
    const std::string p = g.node("Softmax", {scores_of(g, h)}, {Attribute::of_int("axis", 1)});
    g.output(g.node("MatMul", {p, h.v}));
    expect_softmax(g);
  }
  PassGraph g;
  const Heads h = heads(g);
  const std::string sum = g.node("Add", {scores_of(g, h), g.input("m", {"s", "s"})});
  g.output(weighted(g, h, g.node("Mul", {sum, g.constant({0.5})})));
  expect_softmax(g);
}

// A query whose keys are all filled with such a number still weighs them by their scores.
TEST(RaiseAttention, declines_a_fill_that_does_not_vanish) {
  PassGraph g;
  const Heads h = heads(g);
  const std::string keep = g.input("keep", {"b", "1", "s", "s"}, PFRT_DTYPE_BOOL);
  g.output(weighted(g, h, g.node("Where", {keep, scores_of(g, h), g.constant({-10000})})));
  expect_softmax(g);
}

TEST(RaiseAttention, declines_batches_that_broadcast) {
  PassGraph g;
  const Heads h = {g.input("q", {"b", "2", "s", "4"}), g.input("k", {"1", "2", "s", "4"}),
                   g.input("v", {"1", "2", "s", "4"})};
  g.output(weighted(g, h, scores_of(g, h)));
  expect_softmax(g);
}

TEST(RaiseAttention, joined_keys_that_others_use_stay) {
  PassGraph g;
  const Heads h = heads(g);
  const std::string k = concat(g, {g.input("past_k", {"b", "2", "p", "4"}), h.k}, 2);
  const std::string v = concat(g, {g.input("past_v", {"b", "2", "p", "4"}), h.v}, 2);
  g.output(weighted(g, {h.q, k, v}, scores_of(g, {h.q, k, v})));
  g.output(g.node("Relu", {k}));
  const std::string ops = g.optimised(kAttentionShapes);
  EXPECT_NE(ops.find("Concat"), std::string::npos) << ops;
  EXPECT_EQ(g.applied("PastKeys"), 0u);
}

TEST(RaiseAttention, heads_in_another_order_stay) {
  PassGraph g;
  const std::string x = g.input("x", {"b", "2", "s", "4"});
  const std::string q = transposed(g, x, {0, 2, 1, 3});  // positions take the place of heads
  const Heads h = {q, q, q};
  g.output(weighted(g, h, scores_of(g, h)));
  EXPECT_EQ(g.optimised(kAttentionShapes), "Transpose, Attention");
}

TEST(RaiseAttention, projections_that_others_use_are_not_merged) {
  PassGraph g;
  const std::string x = g.input("x", {"b", "s", "8"}), k = projected(g, x);
  const std::string q = by_head(g, projected(g, x), 2);
  const std::string kt = by_head(g, k, 2, {0, 2, 3, 1}), v = by_head(g, projected(g, x), 2);
  g.output(joined(g, g.node("MatMul", {softmax(g, g.node("MatMul", {q, kt})), v}), 8));
  g.output(k);
  EXPECT_EQ(g.optimised(kAttentionShapes).find("Split"), std::string::npos);
}

TEST(RaiseSoftmax, exponentials_with_the_maximum_off) {
  const std::vector<Attribute> second = {Attribute::of_ints("axes", {1})};
  for (const bool multiplies : {false, true}) {
    PassGraph g;
    const std::string x = g.input("x", {"b", "s", "4"});
    const std::string e = g.node("Exp", {g.node("Sub", {x, g.node("ReduceMax", {x}, second)})});
    const std::string sum = g.node("ReduceSum", {e, g.ints({1})});
    g.output(multiplies ? g.node("Mul", {e, g.node("Reciprocal", {sum})})
                        : g.node("Div", {e, sum}));
    EXPECT_EQ(g.optimised(kAttentionShapes), "Softmax");
    EXPECT_EQ(g.find("Softmax")->attr_int("axis", -1), 1);
  }
  PassGraph g;
  const std::string x = g.input("x", {"b", "4"});
  const std::string d = g.node("Sub", {x, g.node("ReduceMax", {x}, second)});
  const std::string sum = g.node("ReduceSum", {g.node("Exp", {d}), g.ints({1})});
  g.output(g.node("Sub", {d, g.node("Log", {sum})}));
  EXPECT_EQ(g.optimised(kAttentionShapes), "LogSoftmax");
}

TEST(RaiseSoftmax, declines_other_axes_and_bare_exponentials) {
  PassGraph g;
  const std::string x = g.input("x", {"b", "4"});
  const std::string most = g.node("ReduceMax", {x}, {Attribute::of_ints("axes", {0})});
  const std::string e = g.node("Exp", {g.node("Sub", {x, most})});
  g.output(g.node("Div", {e, g.node("ReduceSum", {e, g.ints({1})})}));
  const std::string bare = g.node("Exp", {x});
  g.output(g.node("Div", {bare, g.node("ReduceSum", {bare, g.ints({1})})}));
  EXPECT_EQ(g.optimised(kAttentionShapes).find("Softmax"), std::string::npos);
}

}  // namespace
}  // namespace pfrt::test
