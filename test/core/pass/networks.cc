// SPDX-License-Identifier: Apache-2.0
#include "test/core/pass/networks.h"

namespace pfrt::test {
namespace {

Attribute ints_attr(const std::string& name, std::vector<int64_t> values) {
  return Attribute::of_ints(name, std::move(values));
}

}  // namespace

Writer convolutions(const std::string& batch, int blocks) {
  Writer w;
  w.input("image", {batch, "3", "9", "9"}).weights("stem", {6, 3, 3, 3}, -0.4, 0.4);
  w.node("Conv", {"image", "stem"}, {"x0"}, {ints_attr("pads", {1, 1, 1, 1})});
  for (int i = 0; i < blocks; ++i) {
    const std::string n = std::to_string(i), x = "x" + n, next = "x" + std::to_string(i + 1);
    w.weights("w" + n, {6, 6, 3, 3}, -0.3, 0.3).weights("b" + n, {6});
    w.weights("scale" + n, {6}, 0.5, 1.5).weights("shift" + n, {6});
    w.weights("mean" + n, {6}).weights("var" + n, {6}, 0.5, 2);
    w.node("Conv", {x, "w" + n, "b" + n}, {"c" + n}, {ints_attr("pads", {1, 1, 1, 1})});
    w.node("BatchNormalization", {"c" + n, "scale" + n, "shift" + n, "mean" + n, "var" + n},
           {"bn" + n});
    w.node("Identity", {"bn" + n}, {"id" + n});
    w.node("Add", {"id" + n, x}, {"sum" + n});
    w.node("Relu", {"sum" + n}, {next});
  }
  w.node("GlobalAveragePool", {"x" + std::to_string(blocks)}, {"pooled"});
  w.node("Flatten", {"pooled"}, {"flat"});
  w.weights("wc", {6, 5}).weights("bc", {5});
  w.node("MatMul", {"flat", "wc"}, {"product"}).node("Add", {"product", "bc"}, {"scores"});
  w.node("Softmax", {"scores"}, {"classes"}, {Attribute::of_int("axis", -1)});
  return w.output("scores").output("classes");
}

Writer layers() {
  Writer w;
  w.input("x", {"batch", "length", "8"});
  for (int i = 0; i < 3; ++i) {
    const std::string n = std::to_string(i), in = i == 0 ? "x" : "r" + std::to_string(i - 1);
    w.weights("g" + n, {8}, 0.5, 1.5).weights("s" + n, {8}).weights("u" + n, {8, 16});
    w.weights("d" + n, {16, 8}).weights("ub" + n, {16});
    w.node("LayerNormalization", {in, "g" + n, "s" + n}, {"ln" + n});
    w.node("MatMul", {"ln" + n, "u" + n}, {"up" + n}).node("Add", {"up" + n, "ub" + n}, {"a" + n});
    w.node("Sigmoid", {"a" + n}, {"sig" + n}).node("Mul", {"a" + n, "sig" + n}, {"silu" + n});
    w.node("Identity", {"silu" + n}, {"same" + n});
    w.node("MatMul", {"same" + n, "d" + n}, {"down" + n});
    w.node("Add", {"down" + n, in}, {"r" + n});
  }
  return w.output("r2").output("r1");
}

Writer loop() {
  Writer w;
  w.input("trips", {}, PFRT_DTYPE_INT64).input("start", {"N", "4"}).weights("step", {4});
  Writer body(w.graph());
  body.input("i", {}, PFRT_DTYPE_INT64)
      .input("go", {}, PFRT_DTYPE_BOOL)
      .input("carried", {"N", "4"});
  Writer big(body.graph()), small(body.graph());
  big.node("Mul", {"carried", "step"}, {"product"}).node("Identity", {"product"}, {"big"});
  big.output("big");
  small.node("Add", {"carried", "step"}, {"grown"}).node("Identity", {"grown"}, {"small"});
  small.output("small");
  body.node("ReduceMax", {"carried"}, {"most"}, {Attribute::of_int("keepdims", 0)});
  body.floats("two", {}, {2}).node("Greater", {"most", "two"}, {"is_big"});
  body.node("If", {"is_big"}, {"chosen"}, {big.as("then_branch"), small.as("else_branch")});
  body.node("Identity", {"chosen"}, {"next"}).node("Identity", {"go"}, {"go_on"});
  body.output("go_on").output("next");
  Tensor yes = *Tensor::allocate(PFRT_DTYPE_BOOL, {});
  *yes.as<bool>() = true;
  w.constant("yes", std::move(yes));
  w.node("Loop", {"trips", "yes", "start"}, {"end"}, {body.as("body")});
  w.node("Relu", {"end"}, {"positive"});
  return w.output("end").output("positive");
}

}  // namespace pfrt::test
