// SPDX-License-Identifier: Apache-2.0
//
// Comparisons of verification: the inputs that it tries, and the differences that it lets pass.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/pass/rules/numbers.h"
#include "core/verify/trial_inputs.h"
#include "core/verify/verify.h"
#include "test/core/pass/writer.h"

namespace pfrt::test {
namespace {

std::string difference(Writer before, Writer after, std::vector<NamedValues> samples = {},
                       std::vector<std::string>* notes = nullptr, double seconds = 20) {
  Verifier::Context context;
  context.candidates = cpu_alone();
  context.packed = packed();
  context.logger = &silent_logger();
  context.samples = std::move(samples);
  context.seconds = seconds;
  Verifier verifier(std::move(context));
  auto found = verifier.difference(before.canonical(), after.canonical());
  EXPECT_TRUE(found.ok()) << found.status().message();
  if (notes) *notes = verifier.notes();
  return found.ok() ? *found : "";
}

Writer clipped(double high) {
  Writer w;
  w.input("x", {"N"}).floats("low", {}, {-1e30}).floats("high", {}, {high});
  return w.node("Clip", {"x", "low", "high"}, {"y"}).output("y");
}

TEST(Difference, given_inputs_reach_what_made_up_ones_do_not) {
  EXPECT_EQ(difference(clipped(1000), clipped(2000)), "");
  const NamedValues sample{{"x", Value::of(*Tensor::of_float({1, 1500, 3}))}};
  const std::string text = difference(clipped(1000), clipped(2000), {sample});
  EXPECT_NE(text.find("the worst 1500 instead of 1000 at 1"), std::string::npos) << text;
  EXPECT_NE(text.find("x float32[3], given"), std::string::npos) << text;
}

TEST(Difference, what_is_random_is_left_and_said) {
  const auto noisy = [](const std::string& op) {
    Writer w;
    w.input("x", {"N"})
        .node("RandomUniformLike", {"x"}, {"noise"})
        .node("Add", {"x", "noise"}, {"y"});
    return w.node(op, {"x"}, {"z"}).output("y").output("z");
  };
  std::vector<std::string> notes;
  EXPECT_EQ(difference(noisy("Relu"), noisy("Relu"), {}, &notes), "");
  EXPECT_TRUE(std::ranges::count_if(notes, [](const std::string& note) {
    return note.find("random cannot be compared: 'y' left unverified") != note.npos;
  }));
  EXPECT_NE(difference(noisy("Relu"), noisy("Abs")), "");
}

// x * a * b, then quantised. Another order of rounding changes the steps of values that lie between
// two.
Writer quantised(bool folded, double factor = 1) {
  Writer w;
  w.input("x", {"N", "5000"});
  if (folded) {
    w.floats("ab", {}, {0.7 * 0.9 * factor}).node("Mul", {"x", "ab"}, {"q"});
  } else {
    w.floats("a", {}, {0.7}).floats("b", {}, {0.9});
    w.node("Mul", {"x", "a"}, {"p"}).node("Mul", {"p", "b"}, {"q"});
  }
  Tensor zero = *Tensor::allocate(PFRT_DTYPE_UINT8, {});
  w.floats("scale", {}, {0.0001234}).constant("zero", std::move(zero));
  w.node("QuantizeLinear", {"q", "scale", "zero"}, {"steps"});
  w.node("DequantizeLinear", {"steps", "scale", "zero"}, {"y"});
  return w.output("steps").output("y");
}

TEST(Difference, rounding_may_tip_steps_but_not_many) {
  EXPECT_EQ(difference(quantised(false), quantised(true)), "");
  EXPECT_NE(difference(quantised(false), quantised(true, 1.01)), "");
}

// x times the difference of two nearly equal matrices.
Writer cancelling(bool merged) {
  Writer w;
  w.input("x", {"N", "64"});
  std::vector<double> a, b, difference;
  for (int i = 0; i < 64; ++i) {
    a.push_back(static_cast<float>(1.1 + 0.37 * i));
    b.push_back(static_cast<float>(a.back() + 0.0003 * (i % 3)));
    difference.push_back(a.back() - b.back());
  }
  if (merged) {
    w.floats("d", {64, 1}, difference).node("MatMul", {"x", "d"}, {"y"});
  } else {
    w.floats("a", {64, 1}, a).floats("b", {64, 1}, b);
    w.node("MatMul", {"x", "a"}, {"p"}).node("MatMul", {"x", "b"}, {"q"});
    w.node("Sub", {"p", "q"}, {"y"});
  }
  return w.output("y");
}

TEST(Difference, what_cancels_is_judged_by_how_far_rounding_moves_it) {
  EXPECT_EQ(difference(cancelling(false), cancelling(true)), "");
}

TEST(Difference, nan_and_infinity) {
  const auto made = [](const std::string& op) {
    Writer w;
    w.input("x", {"N"}).node("Log", {"x"}, {"l"}).node(op, {"l"}, {"y"});
    return w.output("y");
  };
  EXPECT_EQ(difference(made("Identity"), made("Identity")), "");
  // The graphs are equal except where the logarithm of a negative number is NaN.
  const auto zeroed = [](bool wrong) {
    Writer w;
    w.input("x", {"N"}).node("Log", {"x"}, {"l"}).node("IsNaN", {"l"}, {"n"}).floats("z", {}, {0});
    w.node("Where", {"n", wrong ? "z" : "l", "l"}, {"y"});
    return w.output("y");
  };
  EXPECT_EQ(difference(zeroed(false), zeroed(false)), "");
  EXPECT_NE(difference(zeroed(false), zeroed(true)), "");
}

TEST(Difference, loops_without_end_are_not_counted) {
  const auto forever = [] {
    Writer w;
    w.input("x", {"N"});
    Writer body(w.graph());
    body.input("i", {}, PFRT_DTYPE_INT64).input("go", {}, PFRT_DTYPE_BOOL).input("c", {"N"});
    body.node("Identity", {"go"}, {"more"}).node("Neg", {"c"}, {"d"}).output("more").output("d");
    Tensor yes = *Tensor::allocate(PFRT_DTYPE_BOOL, {});
    *yes.as<bool>() = true;
    w.constant("yes", std::move(yes)).node("Loop", {"", "yes", "x"}, {"y"}, {body.as("body")});
    return w.output("y");
  };
  std::vector<std::string> notes;
  EXPECT_EQ(difference(forever(), forever(), {}, &notes, 0.01), "");
  EXPECT_TRUE(std::ranges::count_if(notes, [](const std::string& note) {
    return note.find("nothing was verified") != note.npos;
  }));
}

TEST(Difference, sizes_follow_names_and_their_sums) {
  Writer w;
  w.input("a", {"past", "4"}).input("b", {"past + new", "4"}).input("c", {"new", "?"});
  w.input("d", {"?"}, PFRT_DTYPE_INT64).node("Relu", {"a"}, {"y"}).output("y");
  const auto graph = w.canonical();
  const TrialInputs trial(*graph, graph->inputs);
  EXPECT_TRUE(trial.dynamic());
  std::set<int64_t> sizes;
  for (uint32_t variant = 0; variant < 12; ++variant) {
    auto made = trial.make(variant, 0);
    ASSERT_TRUE(made.ok());
    const auto dims = [&](size_t i) { return (*made)[i]->tensor.dims; };
    EXPECT_EQ(dims(1)[0], dims(0)[0] + dims(2)[0]);
    EXPECT_EQ(dims(0)[1], 4);
    sizes.insert(dims(0)[0]);
    for (int64_t v : to_int64s((*made)[3]->tensor)) {
      EXPECT_GE(v, 0);
      EXPECT_LT(v, 100);
    }
    // A repeated seed gives equal values, and another seed other values of equal shape.
    auto again = trial.make(variant, 0), other = trial.make(variant, 1);
    EXPECT_EQ(to_doubles(&(*made)[0]->tensor), to_doubles(&(*again)[0]->tensor));
    EXPECT_NE(to_doubles(&(*made)[0]->tensor), to_doubles(&(*other)[0]->tensor));
    EXPECT_EQ(dims(0), (*other)[0]->tensor.dims);
  }
  EXPECT_TRUE(sizes.contains(1) && sizes.contains(2) && sizes.contains(3));
}

}  // namespace
}  // namespace pfrt::test
