// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "test/core/pass/graphs.h"

namespace pfrt::test {
namespace {

constexpr pfrt_dtype kHalf = PFRT_DTYPE_FLOAT16;
const std::vector<std::map<std::string, int64_t>> kActivationShapes = {{{"n", 1}}, {{"n", 7}}};

// Returns the operators that the optimiser makes of an expression of one input.
using Expression = std::function<std::string(PassGraph& g, const std::string& x)>;
std::string raised(const Expression& expression, double tolerance = 1e-5,
                   pfrt_dtype dtype = PFRT_DTYPE_FLOAT32) {
  PassGraph g;
  g.output(expression(g, g.input("x", {"n", "16"}, dtype)));
  return g.optimised(kActivationShapes, tolerance);
}

std::string erf_of(PassGraph& g, const std::string& x) {
  return g.node("Erf", {g.node("Div", {x, g.constant({std::sqrt(2.0)})})});
}

TEST(RaiseActivation, gelu_however_it_is_associated) {
  const Expression forms[] = {
      // PyTorch: x (1 + erf) 0.5
      [](PassGraph& g, const std::string& x) {
        const std::string sum = g.node("Add", {erf_of(g, x), g.constant({1})});
        return g.node("Mul", {g.node("Mul", {x, sum}), g.constant({0.5})});
      },
      // (0.5 x) (1 + erf)
      [](PassGraph& g, const std::string& x) {
        const std::string sum = g.node("Add", {g.constant({1}), erf_of(g, x)});
        return g.node("Mul", {g.node("Mul", {g.constant({0.5}), x}), sum});
      },
      // x (0.5 (1 + erf(x 0.7071)))
      [](PassGraph& g, const std::string& x) {
        const std::string erf = g.node("Erf", {g.node("Mul", {x, g.constant({std::sqrt(0.5)})})});
        const std::string sum = g.node("Add", {erf, g.constant({1})});
        return g.node("Mul", {x, g.node("Mul", {sum, g.constant({0.5})})});
      },
      // x (1 + erf) / 2
      [](PassGraph& g, const std::string& x) {
        const std::string sum = g.node("Add", {erf_of(g, x), g.constant({1})});
        return g.node("Div", {g.node("Mul", {sum, x}), g.constant({2})});
      },
      // x (0.5 + 0.5 erf)
      [](PassGraph& g, const std::string& x) {
        const std::string half = g.node("Mul", {erf_of(g, x), g.constant({0.5})});
        return g.node("Mul", {g.node("Add", {half, g.constant({0.5})}), x});
      }};
  for (size_t i = 0; i < std::size(forms); ++i) EXPECT_EQ(raised(forms[i]), "Gelu") << i;
}

std::string tanh_form(PassGraph& g, const std::string& x, const std::string& inner) {
  const std::string sum = g.node("Add", {g.node("Tanh", {inner}), g.constant({1})});
  return g.node("Mul", {g.node("Mul", {x, g.constant({0.5})}), sum});
}

TEST(RaiseActivation, gelu_by_tanh) {
  const double slope = std::sqrt(2 / std::acos(-1.0));
  const Expression forms[] = {
      // slope (x + 0.044715 x^3)
      [=](PassGraph& g, const std::string& x) {
        const std::string cube = g.node("Pow", {x, g.constant({3})});
        const std::string term = g.node("Mul", {cube, g.constant({0.044715})});
        const std::string sum = g.node("Add", {x, term});
        return tanh_form(g, x, g.node("Mul", {sum, g.constant({slope})}));
      },
      // slope x (1 + 0.044715 x x)
      [=](PassGraph& g, const std::string& x) {
        const std::string once = g.node("Mul", {x, g.constant({0.044715})});
        const std::string sum = g.node("Add", {g.node("Mul", {once, x}), g.constant({1})});
        const std::string line = g.node("Mul", {x, g.constant({slope})});
        return tanh_form(g, x, g.node("Mul", {line, sum}));
      },
      [=](PassGraph& g, const std::string& x) {
        const std::string cube = g.node("Mul", {x, g.node("Mul", {x, x})});
        const std::string term = g.node("Mul", {g.constant({0.044715}), cube});
        return tanh_form(g, x, g.node("Mul", {g.constant({slope}), g.node("Add", {x, term})}));
      }};
  for (const Expression& form : forms) {
    PassGraph g;
    g.output(form(g, g.input("x", {"n", "16"})));
    EXPECT_EQ(g.optimised(kActivationShapes), "Gelu");
    ASSERT_NE(g.find("Gelu"), nullptr);
    EXPECT_EQ(g.find("Gelu")->attr_string("approximate", ""), "tanh");
  }
}

TEST(RaiseActivation, gelu_declines_other_numbers) {
  for (const double root : {1.5, -std::sqrt(2.0)})
    for (const double half : {0.5, 0.25}) {
      if (root < 0 && half == 0.25) continue;
      const std::string ops = raised([&](PassGraph& g, const std::string& x) {
        const std::string erf = g.node("Erf", {g.node("Div", {x, g.constant({root})})});
        const std::string sum = g.node("Add", {erf, g.constant({1})});
        return g.node("Mul", {g.node("Mul", {x, sum}), g.constant({half})});
      });
      EXPECT_EQ(ops, "Div, Erf, Add, Mul, Mul");
    }
}

TEST(RaiseActivation, gelu_declines_where_something_else_needs_a_part) {
  PassGraph g;
  const std::string x = g.input("x", {"n", "16"});
  const std::string erf = erf_of(g, x);
  const std::string sum = g.node("Add", {erf, g.constant({1})});
  g.output(g.node("Mul", {g.node("Mul", {x, sum}), g.constant({0.5})}));
  g.output(erf);
  EXPECT_EQ(g.optimised(kActivationShapes), "Div, Erf, Add, Mul, Mul");
}

TEST(RaiseActivation, gelu_declines_another_x) {
  PassGraph g;
  const std::string x = g.input("x", {"n", "16"}), y = g.input("y", {"n", "16"});
  const std::string sum = g.node("Add", {erf_of(g, x), g.constant({1})});
  g.output(g.node("Mul", {g.node("Mul", {y, sum}), g.constant({0.5})}));
  EXPECT_EQ(g.optimised(kActivationShapes), "Div, Erf, Add, Mul, Mul");
}

TEST(RaiseActivation, gelu_declines_a_constant_that_widens) {
  const std::string ops = raised([](PassGraph& g, const std::string& x) {
    const std::string sum = g.node("Add", {erf_of(g, x), g.constant({1})});
    return g.node("Mul", {g.node("Mul", {x, sum}), g.constant({0.5}, {1, 1, 1})});
  });
  EXPECT_EQ(ops, "Div, Erf, Add, Mul, Mul");
}

TEST(RaiseActivation, swish) {
  EXPECT_EQ(raised([](PassGraph& g, const std::string& x) {
              return g.node("Mul", {x, g.node("Sigmoid", {x})});
            }),
            "Swish");
  PassGraph g;
  const std::string x = g.input("x", {"n", "16"});
  const std::string slope = g.node("Mul", {x, g.constant({1.702})});
  g.output(g.node("Mul", {g.node("Sigmoid", {slope}), x}));
  ASSERT_EQ(g.optimised(kActivationShapes), "Swish");
  EXPECT_FLOAT_EQ(g.find("Swish")->attr_float("alpha", 0), 1.702f);
}

TEST(RaiseActivation, swish_declines_a_gate_of_another_value) {
  PassGraph g;
  const std::string x = g.input("x", {"n", "16"}), y = g.input("y", {"n", "16"});
  g.output(g.node("Mul", {y, g.node("Sigmoid", {x})}));
  g.output(g.node("Mul", {x, g.node("Sigmoid", {g.node("Add", {x, g.constant({1})})})}));
  EXPECT_EQ(g.optimised(kActivationShapes), "Sigmoid, Mul, Add, Sigmoid, Mul");
}

std::string clipped(PassGraph& g, const std::string& x, double shift, double top) {
  const std::string sum = g.node("Add", {x, g.constant({shift})});
  return g.node("Clip", {sum, g.constant({0}), g.constant({top})});
}

TEST(RaiseActivation, hard_swish) {
  const Expression forms[] = {
      [](PassGraph& g, const std::string& x) {
        return g.node("Div", {g.node("Mul", {x, clipped(g, x, 3, 6)}), g.constant({6})});
      },
      [](PassGraph& g, const std::string& x) {
        return g.node("Mul", {x, g.node("Div", {clipped(g, x, 3, 6), g.constant({6})})});
      },
      [](PassGraph& g, const std::string& x) {
        const std::string sixth = g.node("Mul", {clipped(g, x, 3, 6), g.constant({1.0 / 6})});
        return g.node("Mul", {sixth, x});
      },
      [](PassGraph& g, const std::string& x) {
        const std::string hard =
            g.node("HardSigmoid", {x}, {Attribute::of_float("alpha", 1.0f / 6)});
        return g.node("Mul", {x, hard});
      },
      [](PassGraph& g, const std::string& x) {
        const std::string sum = g.node("Add", {x, g.constant({3})});
        const std::string low = g.node("Max", {sum, g.constant({0})});
        const std::string both = g.node("Min", {low, g.constant({6})});
        return g.node("Div", {g.node("Mul", {x, both}), g.constant({6})});
      }};
  for (size_t i = 0; i < std::size(forms); ++i) EXPECT_EQ(raised(forms[i]), "HardSwish") << i;
}

TEST(RaiseActivation, hard_sigmoid) {
  EXPECT_EQ(raised([](PassGraph& g, const std::string& x) {
              return g.node("Div", {clipped(g, x, 3, 6), g.constant({6})});
            }),
            "HardSigmoid");
  PassGraph g;
  const std::string line = g.node("Mul", {g.input("x", {"n", "16"}), g.constant({0.2})});
  g.output(clipped(g, line, 0.5, 1));
  ASSERT_EQ(g.optimised(kActivationShapes), "HardSigmoid");
  EXPECT_FLOAT_EQ(g.find("HardSigmoid")->attr_float("alpha", 0), 0.2f);
  EXPECT_FLOAT_EQ(g.find("HardSigmoid")->attr_float("beta", 0), 0.5f);
}

TEST(RaiseActivation, hard_forms_decline_other_bounds) {
  EXPECT_EQ(raised([](PassGraph& g, const std::string& x) {
              return g.node("Div", {clipped(g, x, 3, 5), g.constant({6})});
            }),
            "Add, Clip, Div");
  EXPECT_EQ(raised([](PassGraph& g, const std::string& x) {
              return g.node("Div", {g.node("Mul", {x, clipped(g, x, 2, 6)}), g.constant({6})});
            }),
            "Add, Clip, Mul, Div");
}

TEST(RaiseActivation, an_exponential_that_may_be_infinite_stays) {
  EXPECT_EQ(raised([](PassGraph& g, const std::string& x) {
              const std::string sum = g.node("Add", {g.constant({1}), g.node("Exp", {x})});
              return g.node("Neg", {g.node("Log", {sum})});
            }),
            "Exp, Add, Log, Neg");
}

TEST(RaiseActivation, mish_and_softplus) {
  EXPECT_EQ(raised([](PassGraph& g, const std::string& x) {
              return g.node("Mul", {x, g.node("Tanh", {g.node("Softplus", {x})})});
            }),
            "Mish");
  EXPECT_EQ(raised([](PassGraph& g, const std::string& x) {
              const std::string sum = g.node("Add", {g.constant({1}), g.node("Exp", {x})});
              return g.node("Mul", {g.node("Tanh", {g.node("Log", {sum})}), x});
            }),
            "Mish");
  EXPECT_EQ(raised([](PassGraph& g, const std::string& x) {
              return g.node("Log", {g.node("Add", {g.node("Exp", {x}), g.constant({2})})});
            }),
            "Exp, Add, Log");
}

TEST(RaiseActivation, leaky_relu_and_prelu) {
  EXPECT_EQ(raised([](PassGraph& g, const std::string& x) {
              return g.node("Max", {g.node("Mul", {x, g.constant({0.1})}), x});
            }),
            "LeakyRelu");
  EXPECT_EQ(raised([](PassGraph& g, const std::string& x) {
              return g.node("Max", {g.node("Mul", {x, g.constant({1.5})}), x});
            }),
            "Mul, Max");
  EXPECT_EQ(raised([](PassGraph& g, const std::string& x) {
              const std::string low = g.node("Relu", {g.node("Neg", {x})});
              return g.node("Add", {g.node("Relu", {x}), g.node("Mul", {g.weights({16}), low})});
            }),
            "PRelu");
}

TEST(RaiseActivation, bounds) {
  EXPECT_EQ(raised([](PassGraph& g, const std::string& x) {
              return g.node("Max", {g.constant({0}), x});
            }),
            "Relu");
  PassGraph g;
  const std::string low = g.node("Relu", {g.input("x", {"n", "16"})});
  g.output(g.node("Min", {low, g.constant({1.5})}));
  ASSERT_EQ(g.optimised(kActivationShapes), "Clip");
  EXPECT_EQ(g.find("Clip")->inputs.size(), 3u);
}

TEST(RaiseActivation, half_precision_counts_its_own_rounding) {
  EXPECT_EQ(
      raised(
          [](PassGraph& g, const std::string& x) {
            const std::string line = g.node("Div", {x, g.constant({std::sqrt(2.0)}, {}, kHalf)});
            const std::string sum =
                g.node("Add", {g.node("Erf", {line}), g.constant({1}, {}, kHalf)});
            return g.node("Mul", {g.node("Mul", {x, sum}), g.constant({0.5}, {}, kHalf)});
          },
          4e-3, kHalf),
      "Gelu");
}

}  // namespace
}  // namespace pfrt::test
