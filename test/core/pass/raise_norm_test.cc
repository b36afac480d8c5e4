// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "test/core/pass/graphs.h"

namespace pfrt::test {
namespace {

using Dims = std::vector<int64_t>;
constexpr pfrt_dtype kHalf = PFRT_DTYPE_FLOAT16;
const std::vector<std::map<std::string, int64_t>> kNormShapes = {{{"n", 1}, {"s", 5}},
                                                                 {{"n", 3}, {"s", 2}}};

std::vector<Attribute> axes(std::vector<int64_t> list) {
  return {Attribute::of_ints("axes", std::move(list))};
}

struct Parts {
  std::string centred, root;
};

// Writes the parts as PyTorch does, with axes as an attribute.
Parts torch_parts(PassGraph& g, const std::string& x, std::vector<int64_t> list,
                  pfrt_dtype dtype = PFRT_DTYPE_FLOAT32, double epsilon = 1e-5) {
  const std::string centred = g.node("Sub", {x, g.node("ReduceMean", {x}, axes(list))});
  const std::string square = g.node("Pow", {centred, g.constant({2}, {}, dtype)});
  const std::string mean = g.node("ReduceMean", {square}, axes(list));
  return {centred, g.node("Sqrt", {g.node("Add", {mean, g.constant({epsilon}, {}, dtype)})})};
}

TEST(RaiseNorm, layer_norm_of_pytorch) {
  PassGraph g;
  const Parts p = torch_parts(g, g.input("x", {"n", "s", "8"}), {-1});
  const std::string scaled =
      g.node("Mul", {g.node("Div", {p.centred, p.root}), g.weights({8}, 0.5, 2)});
  g.output(g.node("Add", {scaled, g.weights({8})}));
  ASSERT_EQ(g.optimised(kNormShapes), "LayerNormalization");
  EXPECT_EQ(g.applied("LayerNorm"), 1u);
  EXPECT_EQ(g.find("LayerNormalization")->attr_int("axis", -1), 2);
  EXPECT_FLOAT_EQ(g.find("LayerNormalization")->attr_float("epsilon", 0), 1e-5f);
}

TEST(RaiseNorm, layer_norm_over_two_axes_with_parameters_on_the_left) {
  PassGraph g;
  const Parts p = torch_parts(g, g.input("x", {"n", "4", "8"}), {1, 2});
  const std::string scaled =
      g.node("Mul", {g.weights({1, 4, 8}), g.node("Div", {p.centred, p.root})});
  g.output(g.node("Add", {g.weights({8}), scaled}));
  EXPECT_EQ(g.optimised(kNormShapes), "LayerNormalization");
}

TEST(RaiseNorm, layer_norm_without_parameters) {
  PassGraph g;
  const Parts p = torch_parts(g, g.input("x", {"n", "8"}), {-1});
  g.output(g.node("Div", {p.centred, p.root}));
  EXPECT_EQ(g.optimised(kNormShapes), "LayerNormalization");
}

TEST(RaiseNorm, layer_norm_with_two_differences_and_a_reciprocal) {
  PassGraph g;
  const std::string x = g.input("x", {"n", "s", "8"});
  const std::string first = g.node("Sub", {x, g.node("ReduceMean", {x}, axes({2}))});
  const std::string second = g.node("Sub", {x, g.node("ReduceMean", {x}, axes({2}))});
  const std::string mean = g.node("ReduceMean", {g.node("Mul", {second, second})}, axes({2}));
  const std::string sum = g.node("Add", {g.constant({1e-3}), mean});
  const std::string inverse = g.node("Reciprocal", {g.node("Sqrt", {sum})});
  g.output(g.node("Mul", {inverse, first}));
  EXPECT_EQ(g.optimised(kNormShapes), "LayerNormalization");
}

TEST(RaiseNorm, layer_norm_with_powers_of_a_half) {
  for (const bool divides : {false, true}) {
    PassGraph g;
    const std::string x = g.input("x", {"n", "8"});
    const std::string d = g.node("Sub", {x, g.node("ReduceMean", {x}, axes({-1}))});
    const std::string mean =
        g.node("ReduceMean", {g.node("Pow", {d, g.constant({2})})}, axes({-1}));
    const std::string sum = g.node("Add", {mean, g.constant({1e-5})});
    const std::string power = g.node("Pow", {sum, g.constant({divides ? 0.5 : -0.5})});
    g.output(g.node(divides ? "Div" : "Mul", {d, power}));
    EXPECT_EQ(g.optimised(kNormShapes), "LayerNormalization");
  }
}

// x inverse + (beta - mean inverse), inverse = gamma / sqrt(...)
TEST(RaiseNorm, layer_norm_of_keras) {
  for (const bool scales : {false, true}) {
    PassGraph g;
    const std::string x = g.input("x", {"n", "s", "8"});
    const std::string mean = g.node("ReduceMean", {x}, axes({2}));
    const std::string d = g.node("Sub", {x, mean});
    const std::string variance = g.node("ReduceMean", {g.node("Mul", {d, d})}, axes({2}));
    const std::string root = g.node("Sqrt", {g.node("Add", {variance, g.constant({1e-3})})});
    std::string inverse = g.node("Reciprocal", {root});
    if (scales) inverse = g.node("Mul", {inverse, g.weights({8}, 0.5, 2)});
    const std::string shift = g.node("Mul", {mean, inverse});
    g.output(g.node("Add", {g.node("Mul", {x, inverse}), g.node("Sub", {g.weights({8}), shift})}));
    EXPECT_EQ(g.optimised(kNormShapes), "LayerNormalization");
  }
}

TEST(RaiseNorm, layer_norm_without_beta_of_keras) {
  PassGraph g;
  const std::string x = g.input("x", {"n", "8"});
  const std::string mean = g.node("ReduceMean", {x}, axes({1}));
  const std::string d = g.node("Sub", {x, mean});
  const std::string variance = g.node("ReduceMean", {g.node("Mul", {d, d})}, axes({1}));
  const std::string root = g.node("Sqrt", {g.node("Add", {variance, g.constant({1e-3})})});
  const std::string inverse = g.node("Reciprocal", {root});
  g.output(g.node("Sub", {g.node("Mul", {x, inverse}), g.node("Mul", {mean, inverse})}));
  EXPECT_EQ(g.optimised(kNormShapes), "LayerNormalization");
}

TEST(RaiseNorm, scale_and_bias_that_a_run_knows) {
  PassGraph g;
  const Parts p = torch_parts(g, g.input("x", {"n", "8"}), {-1});
  const std::string scaled =
      g.node("Mul", {g.node("Div", {p.centred, p.root}), g.input("scale", {"8"})});
  g.output(g.node("Add", {scaled, g.input("bias", {"8"})}));
  EXPECT_EQ(g.optimised(kNormShapes), "LayerNormalization");
}

TEST(RaiseNorm, conversions_around_a_norm_of_half_precision) {
  PassGraph g;
  const std::string wide =
      g.node("Cast", {g.input("x", {"n", "8"}, kHalf)}, {Attribute::of_int("to", 1)});
  const Parts p = torch_parts(g, wide, {-1});
  const std::string y =
      g.node("Cast", {g.node("Div", {p.centred, p.root})}, {Attribute::of_int("to", kHalf)});
  g.output(g.node("Mul", {y, g.weights({8}, 0.5, 2, kHalf)}));
  EXPECT_EQ(g.optimised(kNormShapes, 4e-3), "LayerNormalization");
  EXPECT_EQ(g.applied("NormCast"), 1u);
}

TEST(RaiseNorm, half_precision_throughout_overflows_elsewhere_and_stays) {
  PassGraph g;
  const Parts p = torch_parts(g, g.input("x", {"n", "8"}, kHalf), {-1}, kHalf, 1e-3);
  g.output(g.node("Div", {p.centred, p.root}));
  EXPECT_EQ(g.optimised(kNormShapes, 1e-2).find("LayerNormalization"), std::string::npos);
}

TEST(RaiseNorm, root_mean_square_of_t5) {
  for (const bool divides : {false, true}) {
    PassGraph g;
    const std::string x = g.input("x", {"n", "s", "8"});
    const std::string mean =
        g.node("ReduceMean", {g.node("Pow", {x, g.constant({2})})}, axes({-1}));
    const std::string root = g.node("Sqrt", {g.node("Add", {mean, g.constant({1e-6})})});
    const std::string y = divides ? g.node("Div", {x, root})
                                  : g.node("Mul", {x, g.node("Div", {g.constant({1}), root})});
    g.output(g.node("Mul", {g.weights({8}), y}));
    EXPECT_EQ(g.optimised(kNormShapes), "RMSNormalization");
  }
}

TEST(RaiseNorm, instance_norm_of_images) {
  PassGraph g;
  const Parts p = torch_parts(g, g.input("x", {"n", "3", "s", "7"}), {2, 3});
  const std::string scaled =
      g.node("Mul", {g.node("Div", {p.centred, p.root}), g.weights({3, 1, 1})});
  g.output(g.node("Add", {scaled, g.weights({1, 3, 1, 1})}));
  EXPECT_EQ(g.optimised(kNormShapes), "InstanceNormalization");
}

TEST(RaiseNorm, group_norm_of_pytorch) {
  PassGraph g;
  const std::string x = g.input("x", {"n", "6", "s", "5"});
  const std::string grouped = g.node("Reshape", {x, g.ints({0, 3, -1})});
  const std::string norm = g.node("InstanceNormalization",
                                  {grouped, g.constant({1, 1, 1}, {3}), g.constant({0, 0, 0}, {3})},
                                  {Attribute::of_float("epsilon", 1e-5f)});
  const std::string y = g.node("Reshape", {norm, g.node("Shape", {x})});
  g.output(g.node("Add", {g.node("Mul", {y, g.weights({6, 1, 1})}), g.weights({6, 1, 1})}));
  ASSERT_EQ(g.optimised(kNormShapes), "GroupNormalization");
  EXPECT_EQ(g.find("GroupNormalization")->attr_int("num_groups", 0), 3);
}

// ------------------------------------------------------------------------------- what stays as is

std::string torch_norm_with(PassGraph& g, const std::string& x, std::vector<int64_t> first,
                            std::vector<int64_t> second, double exponent) {
  const std::string d = g.node("Sub", {x, g.node("ReduceMean", {x}, axes(first))});
  const std::string power = g.node("Pow", {d, g.constant({exponent})});
  const std::string mean = g.node("ReduceMean", {power}, axes(second));
  const std::string root = g.node("Sqrt", {g.node("Add", {mean, g.constant({1e-5})})});
  return g.node("Div", {d, root});
}

TEST(RaiseNorm, declines_other_axes_and_exponents) {
  struct Form {
    std::vector<int64_t> first, second;
    double exponent;
  };
  for (const Form& form : {Form{{1}, {1}, 2}, Form{{2}, {2}, 4}}) {
    PassGraph g;
    g.output(
        torch_norm_with(g, g.input("x", {"n", "4", "8"}), form.first, form.second, form.exponent));
    EXPECT_NE(g.optimised(kNormShapes).find("Sqrt"), std::string::npos);
    EXPECT_EQ(g.applied("LayerNorm") + g.applied("RMSNorm"), 0u);
  }
}

// The mean is taken over one axis and the squares over another, so an RMSNorm of the difference is
// left.
TEST(RaiseNorm, different_axes_leave_the_difference) {
  PassGraph g;
  g.output(torch_norm_with(g, g.input("x", {"n", "4", "8"}), {1}, {2}, 2));
  EXPECT_EQ(g.optimised(kNormShapes), "ReduceMean, Sub, RMSNormalization");
}

TEST(RaiseNorm, declines_where_something_else_needs_a_part) {
  PassGraph g;
  const Parts p = torch_parts(g, g.input("x", {"n", "8"}), {-1});
  g.output(g.node("Div", {p.centred, p.root}));
  g.output(p.root);
  EXPECT_NE(g.optimised(kNormShapes).find("Sqrt"), std::string::npos);
}

TEST(RaiseNorm, declines_a_row_of_unknown_length) {
  PassGraph g;
  const Parts p = torch_parts(g, g.input("x", {"n", "s"}), {-1});
  g.output(g.node("Div", {p.centred, p.root}));
  EXPECT_NE(g.optimised(kNormShapes).find("Sqrt"), std::string::npos);
}

TEST(RaiseNorm, a_scale_that_is_larger_stays_outside) {
  PassGraph g;
  const Parts p = torch_parts(g, g.input("x", {"n", "8"}), {-1});
  g.output(g.node("Mul", {g.node("Div", {p.centred, p.root}), g.weights({2, 1, 8})}));
  EXPECT_EQ(g.optimised(kNormShapes), "LayerNormalization, Mul");
}

TEST(RaiseNorm, a_scale_along_the_rows_stays_outside) {
  PassGraph g;
  const Parts p = torch_parts(g, g.input("x", {"n", "8", "8"}), {-1});
  g.output(g.node("Mul", {g.node("Div", {p.centred, p.root}), g.weights({8, 1})}));
  EXPECT_EQ(g.optimised(kNormShapes), "LayerNormalization, Mul");
}

TEST(RaiseNorm, double_precision_stays_as_it_is) {
  PassGraph g;
  const Parts p =
      torch_parts(g, g.input("x", {"n", "8"}, PFRT_DTYPE_FLOAT64), {-1}, PFRT_DTYPE_FLOAT64);
  g.output(g.node("Div", {p.centred, p.root}));
  EXPECT_NE(g.optimised(kNormShapes, 1e-14).find("Sqrt"), std::string::npos);
}

TEST(RaiseNorm, groups_reshaped_to_something_else_stay) {
  PassGraph g;
  const std::string x = g.input("x", {"2", "6", "4"});
  const std::string grouped = g.node("Reshape", {x, g.ints({4, 3, -1})});
  const std::string norm = g.node(
      "InstanceNormalization", {grouped, g.constant({1, 1, 1}, {3}), g.constant({0, 0, 0}, {3})});
  g.output(g.node("Reshape", {norm, g.ints({2, 6, 4})}));
  EXPECT_EQ(g.optimised(), "Reshape, InstanceNormalization, Reshape");
}

}  // namespace
}  // namespace pfrt::test
