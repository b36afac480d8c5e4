// SPDX-License-Identifier: Apache-2.0
//
// Rewrites around products with constant weights: normalisations behind them, windows that see
// padding, and products written by letters.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "test/core/pass/graphs.h"

namespace pfrt::test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(),
                 kNaN = std::numeric_limits<double>::quiet_NaN();
using Sizes = std::vector<std::map<std::string, int64_t>>;
const Sizes kProductBatches{{{"N", 2}}, {{"N", 1}}, {{"N", 0}}};

std::string batch_normalised(PassGraph& g, const std::string& x, int64_t channels,
                             pfrt_dtype dtype = PFRT_DTYPE_FLOAT32) {
  return g.node("BatchNormalization",
                {x, g.weights({channels}, 0.5, 1.5, dtype), g.weights({channels}, -1, 1, dtype),
                 g.weights({channels}, -1, 1, dtype), g.weights({channels}, 0.5, 2, dtype)});
}

std::string reshape(PassGraph& g, const std::string& x, const std::vector<int64_t>& shape) {
  return g.node("Reshape", {x, g.ints(shape)});
}

TEST(FoldBatchNorm, rows_of_a_batch_are_normalised_as_one_matrix) {
  for (const int sum : {0, 1, 2}) {
    PassGraph g;
    std::string x = g.node("MatMul", {g.input("x", {"N", "4", "3"}), g.weights({3, 6})});
    if (sum == 1) x = g.node("Add", {x, g.weights({6})});
    if (sum == 2) x = g.node("Add", {g.weights({1, 6}), x});
    x = batch_normalised(g, reshape(g, x, {-1, 6}), 6);
    g.output(reshape(g, x, {-1, 4, 6}));
    EXPECT_EQ(g.optimised(kProductBatches), "MatMul, Add, Reshape");
    EXPECT_EQ(g.applied("FoldBatchNorm"), 1u);
  }
}

TEST(FoldBatchNorm, a_normalisation_without_shift_needs_no_sum) {
  PassGraph g;
  const std::string x = g.node("MatMul", {g.input("x", {"N", "4", "3"}), g.weights({3, 2})});
  const std::string zeros = g.constant({0, 0}, {2});
  g.output(g.node("BatchNormalization",
                  {reshape(g, x, {-1, 2}), g.weights({2}), zeros, zeros, g.weights({2}, 0.5, 2)}));
  EXPECT_EQ(g.optimised(kProductBatches), "MatMul, Reshape");
}

TEST(FoldBatchNorm, channels_are_followed_through_every_movement) {
  const auto movements = [](PassGraph& g, const std::string& x, int kind) -> std::string {
    switch (kind) {
      case 0:
        return g.node("Transpose", {x}, {perm({0, 2, 1})});
      case 1:
        return reshape(g, g.node("Transpose", {x}, {perm({0, 2, 1})}), {0, 6, 2, 2});
      case 2:
        return g.node(
            "Squeeze",
            {g.node("Unsqueeze", {g.node("Flatten", {x}, {axis(2)}), g.ints({0})}), g.ints({0})});
      case 3:  // a channel is two columns
        return reshape(g, x, {-1, 3, 2});
      case 4:  // columns are groups of the same channels
        return reshape(g, x, {-1, 3});
      default:
        return g.node("Transpose", {reshape(g, x, {-1, 2, 2, 6})}, {perm({0, 3, 1, 2})});
    }
  };
  constexpr int64_t kChannels[] = {6, 6, 6, 3, 3, 6};
  for (int kind = 0; kind < 6; ++kind)
    for (const bool biased : {false, true}) {
      PassGraph g;
      std::string x = g.node("MatMul", {g.input("x", {"N", "4", "5"}), g.weights({5, 6})});
      if (biased) x = g.node("Add", {x, g.weights({6})});
      g.output(g.node("Relu", {batch_normalised(g, movements(g, x, kind), kChannels[kind])}));
      EXPECT_EQ(g.optimised(kProductBatches).find("BatchNormalization"), std::string::npos) << kind;
      EXPECT_EQ(g.applied("FoldBatchNorm"), 1u) << kind;
    }
}

TEST(FoldBatchNorm, other_products_take_it_too) {
  PassGraph g;
  const std::string x = g.input("x", {"N", "3", "2", "2"});
  std::string y = g.node("Conv", {x, g.weights({4, 3, 1, 1}), g.weights({4})});
  y = batch_normalised(g, reshape(g, y, {0, 4, 4}), 4);
  g.output(g.node("Relu", {y}));
  std::string z = g.node("Gemm", {g.node("Flatten", {x}), g.weights({8, 12}), g.weights({8})},
                         {Attribute::of_int("transB", 1)});
  g.output(g.node("Exp", {batch_normalised(g, reshape(g, z, {-1, 8, 1}), 8)}));
  EXPECT_EQ(g.optimised(kProductBatches).find("BatchNormalization"), std::string::npos);
  EXPECT_EQ(g.applied("FoldBatchNorm"), 2u);
}

TEST(FoldBatchNorm, short_floats_are_folded) {
  PassGraph g;
  const auto f16 = PFRT_DTYPE_FLOAT16;
  const std::string x =
      g.node("MatMul", {g.input("x", {"N", "4", "3"}, f16), g.weights({3, 6}, -1, 1, f16)});
  g.output(batch_normalised(g, reshape(g, x, {-1, 6}), 6, f16));
  EXPECT_EQ(g.optimised(kProductBatches, 2e-2).find("BatchNormalization"), std::string::npos);
}

// The sum that was tried is taken back, and nothing is tried again for it.
TEST(FoldBatchNorm, stays_where_scaled_weights_would_vanish) {
  for (const bool biased : {false, true}) {
    PassGraph g;
    const auto f16 = PFRT_DTYPE_FLOAT16;
    std::string x =
        g.node("MatMul", {g.input("x", {"N", "4", "3"}, f16), g.weights({3, 6}, 0.5, 1, f16)});
    if (biased) x = g.node("Add", {x, g.weights({6}, 0.5, 1, f16)});
    const std::string tiny = g.weights({6}, 1e-7, 1e-6, f16), some = g.weights({6}, 0.5, 1, f16);
    g.output(g.node("BatchNormalization",
                    {reshape(g, x, {-1, 6}), tiny, some, some, g.weights({6}, 100, 200, f16)}));
    EXPECT_EQ(g.optimised(kProductBatches, 2e-2), biased
                                                      ? "MatMul, Add, Reshape, BatchNormalization"
                                                      : "MatMul, Reshape, BatchNormalization");
    EXPECT_EQ(g.applied("FoldBatchNorm"), 0u);
  }
}

TEST(FoldBatchNorm, stays_where_its_channels_are_no_columns) {
  const auto left = [](int64_t channels, const std::vector<int64_t>& shape) {
    PassGraph g;
    const std::string x = g.node("MatMul", {g.input("x", {"N", "4", "3"}), g.weights({3, 6})});
    g.output(batch_normalised(g, reshape(g, x, shape), channels));
    return g.optimised(kProductBatches);
  };
  EXPECT_EQ(left(4, {-1, 4, 6}), "MatMul, BatchNormalization");          // rows
  EXPECT_EQ(left(24, {-1, 24}), "MatMul, Reshape, BatchNormalization");  // rows and columns
  EXPECT_EQ(left(4, {-1, 4}), "MatMul, Reshape, BatchNormalization");    // across columns
}

TEST(FoldBatchNorm, stays_where_something_else_reads_the_product) {
  for (const int kind : {0, 1, 2, 3}) {
    PassGraph g;
    const std::string x = g.node("MatMul", {g.input("x", {"N", "4", "3"}), g.weights({3, 6})});
    const std::string sum = g.node("Add", {x, g.weights({6})}), rows = reshape(g, sum, {-1, 6});
    g.output(batch_normalised(g, rows, 6));
    if (kind == 0) g.output(rows);
    if (kind == 1) g.output(sum);
    if (kind == 2) g.output(g.node("Relu", {x}));
    if (kind == 3) g.output(g.node("Exp", {rows}));
    EXPECT_NE(g.optimised(kProductBatches).find("BatchNormalization"), std::string::npos) << kind;
    EXPECT_EQ(g.applied("FoldBatchNorm"), 0u) << kind;
  }
}

TEST(FoldBatchNorm, weights_of_two_products_are_scaled_for_one) {
  PassGraph g;
  const std::string w = g.weights({3, 6}), x = g.input("x", {"N", "4", "3"});
  g.output(batch_normalised(g, reshape(g, g.node("MatMul", {x, w}), {-1, 6}), 6));
  g.output(batch_normalised(g, reshape(g, g.node("MatMul", {g.node("Neg", {x}), w}), {-1, 6}), 6));
  g.output(g.node("MatMul", {g.node("Exp", {x}), w}));
  EXPECT_EQ(g.optimised(kProductBatches).find("BatchNormalization"), std::string::npos);
  EXPECT_EQ(g.applied("FoldBatchNorm"), 2u);
}

// What is not finite would become NaN, or something else, in the weights.
TEST(FoldBatchNorm, unusual_numbers_stay_as_they_are) {
  const auto folds = [](const std::vector<double>& scale, const std::vector<double>& shift,
                        const std::vector<double>& variance, const std::vector<double>& weights,
                        const std::vector<double>& bias) {
    PassGraph g;
    std::string x = g.node("MatMul", {g.input("x", {"N", "2", "1"}), g.constant(weights, {1, 2})});
    x = g.node("Add", {x, g.constant(bias, {2})});
    g.output(g.node("BatchNormalization",
                    {reshape(g, x, {-1, 2}), g.constant(scale, {2}), g.constant(shift, {2}),
                     g.constant({0, 0.5}, {2}), g.constant(variance, {2})}));
    const std::string left = g.optimised(kProductBatches);
    return left.find("BatchNormalization") == std::string::npos;
  };
  const std::vector<double> ones{1, 1}, some{0.5, -2};
  EXPECT_TRUE(folds(some, ones, ones, ones, ones));
  EXPECT_FALSE(folds(some, ones, {-1, 1}, ones, ones));
  EXPECT_FALSE(folds(some, ones, {kNaN, 1}, ones, ones));
  EXPECT_FALSE(folds({kInf, 1}, ones, ones, ones, ones));
  EXPECT_FALSE(folds({1e-30, 1}, ones, ones, ones, ones));
  EXPECT_FALSE(folds({1e15, 1}, ones, ones, {1e30, 1}, ones));
  EXPECT_FALSE(folds(some, {kInf, 0}, ones, ones, ones));
  EXPECT_FALSE(folds({1e15, 1}, ones, ones, ones, {1e30, 1}));
}

// ---------------------------------------------------------------------------------------- windows

struct WindowOf {
  std::vector<int64_t> image, kernel, pads, dilations, strides, left;  // |left|: the kernel after
};

std::string conv_of(PassGraph& g, const WindowOf& w, const std::string& x,
                    const std::string& weights) {
  return g.node("Conv", {x, weights, g.weights({4})},
                {Attribute::of_ints("pads", w.pads), Attribute::of_ints("dilations", w.dilations),
                 Attribute::of_ints("strides", w.strides), Attribute::of_int("group", 2)});
}

TEST(LiveTaps, a_kernel_keeps_the_taps_that_see_the_image) {
  const WindowOf windows[] = {
      {{7, 7}, {3, 3}, {8, 8, 8, 8}, {8, 8}, {1, 1}, {1, 1}},
      {{7, 7}, {3, 3}, {7, 7, 7, 7}, {7, 7}, {1, 1}, {1, 1}},
      {{7, 7}, {3, 3}, {6, 6, 6, 6}, {6, 6}, {1, 1}, {3, 3}},
      {{7, 5}, {3, 3}, {6, 6, 6, 6}, {6, 6}, {1, 1}, {3, 1}},
      {{1, 1}, {3, 3}, {1, 1, 1, 1}, {1, 1}, {2, 2}, {1, 1}},
      {{1, 4}, {3, 5}, {1, 0, 1, 1}, {1, 1}, {1, 1}, {1, 4}},
      {{1, 2}, {3, 5}, {1, 3, 1, 0}, {1, 1}, {1, 1}, {1, 2}},
      {{2, 3}, {5, 3}, {8, 3, 8, 3}, {4, 3}, {3, 2}, {1, 1}},
      {{6}, {3}, {6, 6}, {6}, {1}, {1}},
      {{6}, {4}, {10, 5}, {5}, {2}, {2}},
      {{2, 2, 2}, {3, 3, 3}, {2, 1, 2, 2, 1, 2}, {2, 1, 2}, {1, 1, 1}, {1, 3, 1}},
  };
  for (const WindowOf& w : windows) {
    PassGraph g;
    std::vector<std::string> x_dims{"N", "6"};
    Dims w_dims{4, 3};
    for (const int64_t size : w.image) x_dims.push_back(std::to_string(size));
    w_dims.insert(w_dims.end(), w.kernel.begin(), w.kernel.end());
    g.output(conv_of(g, w, g.input("x", x_dims), g.weights(w_dims)));
    EXPECT_EQ(g.optimised(kProductBatches, 1e-5, OptLevel::kExtended), "Conv");
    const Dims dims = g.graph().constant(g.find("Conv")->inputs[1])->dims;
    EXPECT_EQ(std::vector<int64_t>(dims.begin() + 2, dims.end()), w.left)
        << testing::PrintToString(w.image) << testing::PrintToString(w.kernel);
    EXPECT_EQ(g.applied("LiveTaps"), w.left == w.kernel ? 0u : 1u);
  }
}

TEST(LiveTaps, a_kernel_of_unknown_images_and_one_that_sees_nothing_stay) {
  PassGraph g;
  const WindowOf w{{}, {3, 3}, {8, 8, 8, 8}, {8, 8}, {1, 1}, {}};
  g.output(conv_of(g, w, g.input("x", {"N", "6", "S", "S"}), g.weights({4, 3, 3, 3})));
  EXPECT_EQ(g.optimised({{{"N", 1}, {"S", 7}}, {{"N", 1}, {"S", 12}}}), "Conv");
  EXPECT_EQ(g.applied("LiveTaps"), 0u);
  PassGraph h;
  const WindowOf beside{{}, {2, 1}, {2, 0, 2, 0}, {4, 1}, {1, 1}, {}};
  h.output(conv_of(h, beside, h.input("x", {"N", "6", "1", "1"}), h.weights({4, 3, 2, 1})));
  EXPECT_EQ(h.optimised(kProductBatches), "Conv");
  EXPECT_EQ(h.applied("LiveTaps"), 0u);
}

TEST(LiveTaps, weights_that_are_not_finite_or_no_constants_stay) {
  const WindowOf w{{}, {3}, {5, 5}, {5}, {1}, {}};
  for (const double odd : {kNaN, kInf}) {
    PassGraph g;
    std::vector<double> weights(36, 1);
    weights[0] = odd;
    g.output(conv_of(g, w, g.input("x", {"N", "6", "4"}), g.constant(weights, {4, 3, 3})));
    EXPECT_EQ(g.optimised(kProductBatches), "Conv");
    EXPECT_EQ(g.applied("LiveTaps"), 0u);
  }
  PassGraph g;
  g.output(conv_of(g, w, g.input("x", {"N", "6", "4"}), g.input("w", {"4", "3", "3"})));
  EXPECT_EQ(g.optimised(kProductBatches), "Conv");
  EXPECT_EQ(g.applied("LiveTaps"), 0u);
}

TEST(LiveTaps, a_kernel_without_elements_stays_however_long_it_is) {
  PassGraph g;
  const std::string w = g.weights({0, 6, int64_t{1} << 28});
  g.output(g.node("Conv", {g.input("x", {"N", "6", "4"}), w},
                  {Attribute::of_ints("pads", {int64_t{1} << 28, int64_t{1} << 28})}));
  EXPECT_EQ(g.optimised({{{"N", 1}}}), "Conv");
  EXPECT_EQ(g.applied("LiveTaps"), 0u);
}

TEST(LiveTaps, weights_of_two_convolutions_are_cut_for_one) {
  PassGraph g;
  const std::string w = g.weights({4, 3, 3}), x = g.input("x", {"N", "6", "4"});
  g.output(conv_of(g, {{}, {3}, {5, 5}, {5}, {1}, {}}, x, w));
  g.output(conv_of(g, {{}, {3}, {1, 1}, {1}, {1}, {}}, x, w));
  EXPECT_EQ(g.optimised(kProductBatches), "Conv, Conv");
  EXPECT_EQ(g.applied("LiveTaps"), 1u);
}

// ---------------------------------------------------------------------------------------- letters

struct Letters {
  const char* equation;
  std::vector<std::vector<std::string>> dims;
  std::vector<size_t> constants = {};
};

std::string by_letters(const Letters& of, pfrt_dtype dtype = PFRT_DTYPE_FLOAT32,
                       uint64_t* applied = nullptr) {
  PassGraph g;
  std::vector<std::string> inputs;
  for (size_t i = 0; i < of.dims.size(); ++i) {
    const bool constant = std::ranges::find(of.constants, i) != of.constants.end();
    Dims dims;
    for (const std::string& dim : of.dims[i])
      if (constant) dims.push_back(std::stoll(dim));
    inputs.push_back(constant ? g.weights(dims, -1, 1, dtype)
                              : g.input("x" + std::to_string(i), of.dims[i], dtype));
  }
  const std::string out = g.node("Einsum", inputs, {Attribute::of_string("equation", of.equation)});
  g.output(g.node("Neg", {out}));
  const double tolerance = dtype == PFRT_DTYPE_FLOAT16 ? 1e-2 : 1e-5;
  const std::string left =
      g.optimised({{{"N", 2}, {"M", 3}}, {{"N", 1}, {"M", 1}}, {{"N", 0}, {"M", 2}}}, tolerance);
  if (applied) *applied = g.applied("EinsumByLetters");
  return left;
}

TEST(EinsumByLetters, products_sums_and_transposes_are_written_as_such) {
  const Letters all[] = {
      {"ij->ji", {{"N", "3"}}},
      {"ij->i", {{"N", "3"}}},
      {"ijk->ki", {{"N", "3", "M"}}},
      {"ij->", {{"N", "3"}}},
      {"ij", {{"N", "3"}}},
      {"...ij->...ji", {{"2", "N", "3"}}},
      {"i...->...", {{"4", "N", "3"}}},
      {"ij,jk->ik", {{"N", "3"}, {"3", "4"}}},
      {"ij,jk", {{"N", "3"}, {"3", "4"}}, {1}},
      {"ji,jk->ki", {{"3", "N"}, {"3", "4"}}, {1}},
      {"oi,bi->bo", {{"5", "3"}, {"N", "3"}}, {0}},
      {"bij,bjk->bik", {{"N", "2", "3"}, {"N", "3", "4"}}},
      {"bghid,bghjd->bghij", {{"N", "2", "3", "M", "4"}, {"N", "2", "3", "M", "4"}}},
      {"bghij,bghjd->bghid", {{"N", "2", "3", "M", "5"}, {"N", "2", "3", "5", "4"}}},
      {"bhwc,hkc->bhwk", {{"N", "3", "2", "4"}, {"3", "5", "4"}}},
      {"bhwc,wkc->bhwk", {{"N", "3", "2", "4"}, {"2", "5", "4"}}, {1}},
      {"bnd,dhk->bhnk", {{"N", "M", "6"}, {"6", "2", "3"}}, {1}},
      {"bhnk,hkd->bnd", {{"N", "2", "M", "3"}, {"2", "3", "6"}}, {1}},
      {"nkctv,kvw->nctw", {{"N", "2", "3", "M", "4"}, {"2", "4", "5"}}, {1}},
      {"bd,d->b", {{"N", "3"}, {"3"}}},
      {"d,bd->b", {{"3"}, {"N", "3"}}},
      {"d,dk->k", {{"3"}, {"3", "4"}}},
      {"bn,bnd->bd", {{"N", "3"}, {"N", "3", "4"}}},
      {"bnd,bn->bd", {{"N", "3", "4"}, {"N", "3"}}},
      {"bi,bi->b", {{"N", "3"}, {"N", "3"}}},
      {"i,i->", {{"3"}, {"3"}}},
      {"ij,ij->", {{"N", "3"}, {"N", "3"}}},
      {"i,j->ij", {{"N"}, {"M"}}},
      {"i,j->ji", {{"N"}, {"M"}}},
      {"nchw,nc->nchw", {{"N", "2", "M", "3"}, {"N", "2"}}},
      {"nc,nhwc->nchw", {{"N", "2"}, {"N", "M", "3", "2"}}},
      {",ij->ij", {{}, {"N", "3"}}},
      {"...ij,...jk->...ik", {{"N", "2", "3"}, {"3", "4"}}},
      {"...ij,...jk->...ik", {{"M", "1", "2", "3"}, {"4", "3", "4"}}},
      {"...i,...i->...", {{"N", "3"}, {"2", "1", "3"}}},
  };
  for (const Letters& of : all)
    for (const auto dtype : {PFRT_DTYPE_FLOAT32, PFRT_DTYPE_FLOAT64}) {
      uint64_t applied = 0;
      const std::string left = by_letters(of, dtype, &applied);
      EXPECT_EQ(left.find("Einsum"), std::string::npos) << of.equation << ": " << left;
      EXPECT_NE(left.find("Neg"), std::string::npos) << of.equation << ": " << left;
      EXPECT_EQ(applied, 1u) << of.equation;
    }
}

TEST(EinsumByLetters, products_take_no_more_operators_than_they_need) {
  EXPECT_EQ(by_letters({"ij,jk->ik", {{"N", "3"}, {"3", "4"}}}), "MatMul, Neg");
  EXPECT_EQ(by_letters({"nld,de->nle", {{"N", "M", "3"}, {"3", "4"}}, {1}}), "MatMul, Neg");
  EXPECT_EQ(by_letters({"oi,bi->bo", {{"5", "3"}, {"N", "3"}}, {0}}), "Gemm, Neg");
  EXPECT_EQ(by_letters({"bij,bjk->bik", {{"N", "2", "3"}, {"N", "3", "4"}}}), "MatMul, Neg");
  EXPECT_EQ(by_letters({"bjk,bij->bik", {{"N", "3", "4"}, {"N", "2", "3"}}}), "MatMul, Neg");
  EXPECT_EQ(by_letters({"nc,nc->nc", {{"N", "3"}, {"N", "3"}}}), "Mul, Neg");
  EXPECT_EQ(by_letters({"bij,bjk->bik", {{"N", "2", "3"}, {"N", "3", "4"}}}, PFRT_DTYPE_FLOAT16),
            "MatMul, Neg");
}

TEST(EinsumByLetters, what_has_no_such_form_stays) {
  for (const Letters& of :
       {Letters{"ii->i", {{"3", "3"}}}, Letters{"iij,jk->ik", {{"2", "2", "3"}, {"3", "4"}}},
        Letters{"ij,jk,kl->il", {{"N", "3"}, {"3", "4"}, {"4", "2"}}},
        Letters{"ij,jk->k", {{"N", "3"}, {"3", "4"}}},
        Letters{"ij,jk->ik", {{"2", "1"}, {"3", "4"}}}})
    EXPECT_EQ(by_letters(of), "Einsum, Neg") << of.equation;
  EXPECT_EQ(by_letters({"bi,bi->b", {{"N", "3"}, {"N", "3"}}}, PFRT_DTYPE_FLOAT16), "Einsum, Neg");
  EXPECT_EQ(by_letters({"ij,jk->ik", {{"2", "3"}, {"3", "4"}}}, PFRT_DTYPE_INT32), "Einsum, Neg");
}

TEST(EinsumByLetters, an_output_of_the_graph_keeps_its_name) {
  PassGraph g;
  const std::string out = g.node("Einsum", {g.input("x", {"N", "3"}), g.weights({4, 3})},
                                 {Attribute::of_string("equation", "ij,kj->ki")});
  g.output(out);
  g.output(
      g.node("Einsum", {g.input("y", {"N", "3"})}, {Attribute::of_string("equation", "ij->ij")}));
  EXPECT_EQ(g.optimised(kProductBatches).find("jk"), std::string::npos);
  EXPECT_EQ(g.graph().at(g.graph().outputs[0]).name, out);
  EXPECT_EQ(g.applied("EinsumByLetters"), 1u);
}

TEST(EinsumByLetters, attention_written_by_letters_is_attention) {
  PassGraph g;
  const std::string q = g.input("q", {"N", "2", "4", "8"}), k = g.input("k", {"N", "2", "5", "8"}),
                    v = g.input("v", {"N", "2", "5", "8"});
  std::string s = g.node("Einsum", {q, k}, {Attribute::of_string("equation", "bhid,bhjd->bhij")});
  s = g.node("Softmax", {g.node("Mul", {s, g.constant({0.25})})}, {axis(-1)});
  g.output(g.node("Einsum", {s, v}, {Attribute::of_string("equation", "bhij,bhjd->bhid")}));
  EXPECT_EQ(g.optimised(kProductBatches), "Attention");
}

}  // namespace
}  // namespace pfrt::test
