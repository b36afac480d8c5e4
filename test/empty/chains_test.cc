// SPDX-License-Identifier: Apache-2.0
//
// Small networks whose nodes are fused, packed and laid out in blocks of channels: a session that
// has run them whole runs them with dimensions of 0, as level none does, and then whole again, with
// the same bits.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "test/empty/isolated.h"
#include "test/empty/outcome.h"

namespace pfrt_empty {
namespace {

using namespace pyflame_rt;
using Names = std::vector<std::string>;

class Network {
 public:
  // Dimensions below 0 in |dims| are dynamic.
  explicit Network(Dims dims, DType dtype = DType::Float32) : dims_(std::move(dims)) {
    Shape shape;
    for (const int64_t d : dims_) shape.push_back(d < 0 ? std::optional<int64_t>() : d);
    graph_.set_opset(17);
    graph_.add_input({"x", shape, dtype});
  }
  std::string constant(const std::string& text) {
    const std::string name = "c" + std::to_string(++names_);
    graph_.add_initializer(name, tensor_of(operand(text)));
    return name;
  }
  std::string add(const std::string& op, const Names& inputs,
                  const std::map<std::string, AttributeValue>& attributes = {}) {
    const std::string name = "v" + std::to_string(++names_);
    const auto node = std::make_shared<Node>(name, op, inputs, Names{name});
    for (const auto& [key, value] : attributes)
      std::visit([&k = key, &node](const auto& v) { node->set_attr(k, v); }, value);
    graph_.add_node(node);
    return name;
  }
  const Graph& finish(const std::string& output) {
    TensorInfo info;
    info.name = output;
    info.dtype = DType::Undefined;
    info.unranked = true;
    graph_.add_output(info);
    return graph_;
  }

 private:
  Graph graph_{"chain"};
  Dims dims_;
  int names_ = 0;
};

SessionOptions at(OptLevel level) {
  SessionOptions options;
  options.optimization_level = level;
  options.num_threads = 1;
  options.log_level = "off";
  return options;
}

Tensor run(const InferenceSession& session, const Dims& dims) {
  Operand x{true, DType::Float32, dims, {}};
  return session.run({}, {{"x", tensor_of(x)}})[0];
}

// Runs |whole|, then each of |empty| and |whole| again. Returns the fault, or nothing.
std::string check(const Graph& graph, const Dims& whole, const std::vector<Dims>& empty) {
  const InferenceSession plain(graph, at(OptLevel::None)), fused(graph, at(OptLevel::All));
  const Tensor first = run(fused, whole);
  for (const Dims& dims : empty) {
    const Tensor want = run(plain, dims), got = run(fused, dims);
    const std::string wrong = difference({"", {{want.dtype(), want.shape(), numbers(want)}}},
                                         {"", {{got.dtype(), got.shape(), numbers(got)}}});
    if (!wrong.empty()) return wrong;
    const Tensor again = run(fused, whole);
    if (first.size_bytes() != again.size_bytes() ||
        std::memcmp(first.data(), again.data(), first.size_bytes()) != 0)
      return "whole inputs give something else afterwards";
  }
  return {};
}

// Runs |body| in a process of its own, since the other tests fork too.
void expect_right(const std::function<std::string()>& body) {
  for (const Fault& fault : run_isolated(1, 60, [&](size_t) { return body(); }))
    ADD_FAILURE() << fault.text;
}

TEST(EmptyChains, of_convolutions_and_pools) {
  using Ints = std::vector<int64_t>;
  Network net({-1, 16, -1, -1});
  std::string v =
      net.add("Conv", {"x", net.constant("float32[32,16,3,3]")}, {{"pads", Ints(4, 1)}});
  v = net.add("Relu", {v});
  v = net.add("MaxPool", {v},
              {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints(4, 1)}});
  v = net.add("Conv", {v, net.constant("float32[32,32,1,1]"), net.constant("float32[32]")});
  v = net.add("Conv", {v, net.constant("float32[32,1,3,3]")},
              {{"group", int64_t{32}}, {"pads", Ints(4, 1)}});
  v = net.add("AveragePool", {v}, {{"kernel_shape", Ints{2, 2}}, {"pads", Ints(4, 1)}});
  v = net.add("ConvTranspose", {v, net.constant("float32[32,8,2,2]")}, {{"strides", Ints{2, 2}}});
  const Graph& graph = net.finish(net.add("Sigmoid", {v}));
  expect_right([&] { return check(graph, {2, 16, 9, 10}, {{0, 16, 9, 10}, {0, 16, 0, 10}}); });
  expect_right([&]() -> std::string {
    const InferenceSession session(graph, at(OptLevel::All));
    for (const Dims& dims : {Dims{2, 16, 0, 10}, Dims{2, 16, 9, 0}, Dims{1, 16, 0, 0}}) {
      try {
        (void)run(session, dims);
      } catch (const PyFlameRTError& error) {
        if (std::string(error.what()).empty()) return "is refused without a sentence";
      }
    }
    return {};
  });
}

TEST(EmptyChains, of_products_and_normalisations) {
  Network net({-1, -1, 64});
  std::string v = net.add("MatMul", {"x", net.constant("float32[64,64]")});
  v = net.add("Add", {v, net.constant("float32[64]")});
  v = net.add("Add", {v, "x"});
  v = net.add("LayerNormalization", {v, net.constant("float32[64]"), net.constant("float32[64]")});
  const std::string wide = net.add("MatMul", {v, net.constant("float32[64,96]")});
  const std::string turned = net.add("Transpose", {v}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  v = net.add("Softmax", {net.add("MatMul", {v, turned})});
  v = net.add("MatMul", {v, wide});
  const Graph& graph = net.finish(net.add("Relu", {v}));
  expect_right([&] { return check(graph, {2, 7, 64}, {{0, 7, 64}, {2, 0, 64}, {0, 0, 64}}); });
}

TEST(EmptyChains, of_products_in_half_precision) {
  Network net({-1, 64});
  std::string v = net.add("Cast", {"x"}, {{"to", int64_t{10}}});
  v = net.add("MatMul", {v, net.constant("float16[64,48]")});
  v = net.add("Gemm", {v, net.constant("float16[48,32]"), net.constant("float16[32]")});
  v = net.add("Relu", {v});
  const Graph& graph = net.finish(net.add("Cast", {v}, {{"to", int64_t{1}}}));
  expect_right([&] { return check(graph, {9, 64}, {{0, 64}}); });
}

TEST(EmptyChains, of_reductions_over_nothing) {
  Network net({-1, -1});
  const std::string sum = net.add("ReduceSum", {"x", net.constant("int64[1]:1")});
  const std::string exp = net.add("Exp", {net.add("Neg", {sum})});
  const Graph& graph = net.finish(net.add("Mul", {exp, net.constant("float32[1]:3")}));
  expect_right([&] { return check(graph, {4, 5}, {{4, 0}, {0, 5}, {0, 0}}); });
}

}  // namespace
}  // namespace pfrt_empty
