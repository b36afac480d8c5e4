// SPDX-License-Identifier: Apache-2.0
#include "test/plugins/wse_models.h"

namespace pfrt_test::wse {
namespace {

using Names = std::vector<std::string>;

std::string conv(Net& net, const std::string& x, int64_t in, int64_t out, int64_t kernel,
                 int64_t stride, int64_t pad) {
  const int64_t fan_in = in * kernel * kernel;
  const std::string y = net.node(
      "Conv", {x, net.weights({out, in, kernel, kernel}, fan_in, 1.4F), net.weights({out}, 9)},
      {Attr::of_ints("strides", {stride, stride}), Attr::of_ints("pads", {pad, pad, pad, pad})});
  return net.node("Relu", {y});
}

std::string pool(Net& net, const std::string& x) {
  return net.node("MaxPool", {x},
                  {Attr::of_ints("kernel_shape", {3, 3}), Attr::of_ints("strides", {2, 2})});
}

std::string fire(Net& net, const std::string& x, int64_t in, int64_t squeezed, int64_t each) {
  const std::string s = conv(net, x, in, squeezed, 1, 1, 0);
  return net.node("Concat",
                  {conv(net, s, squeezed, each, 1, 1, 0), conv(net, s, squeezed, each, 3, 1, 1)},
                  {Attr::of_int("axis", 1)});
}

constexpr int64_t kWidth = 64, kHeads = 4, kPart = kWidth / kHeads, kInner = 128;

std::string layer_norm(Net& net, const std::string& x) {
  return net.node("LayerNormalization", {x, net.weights({kWidth}, 1), net.weights({kWidth}, 9)},
                  {Attr::of_int("axis", -1), Attr::of_float("epsilon", 1e-5F)});
}

std::string heads_of(Net& net, const std::string& x, int64_t heads) {
  return net.turned(net.reshaped(x, {0, 0, heads, kPart}), {0, 2, 1, 3});
}

std::string attend(Net& net, const std::string& q, const std::string& k, const std::string& v) {
  const std::string scores =
      net.node("Mul", {net.node("MatMul", {q, net.turned(k, {0, 1, 3, 2})}),
                       net.number(1 / std::sqrt(static_cast<float>(kPart)))});
  const std::string shares = net.node("Softmax", {scores}, {Attr::of_int("axis", -1)});
  return net.reshaped(net.turned(net.node("MatMul", {shares, v}), {0, 2, 1, 3}), {0, 0, kWidth});
}

std::string root_norm(Net& net, const std::string& x) {
  return net.node("RMSNormalization", {x, net.weights({kWidth}, 1)},
                  {Attr::of_int("axis", -1), Attr::of_float("epsilon", 1e-5F)});
}

// Rotates by x cos + (-x2, x1) sin; |cos| and |sin| are those of the position.
std::string rotated(Net& net, const std::string& x, const std::string& cos,
                    const std::string& sin) {
  const Names halves = net.split(x, 2, 3);
  const std::string other =
      net.node("Concat", {net.node("Neg", {halves[1]}), halves[0]}, {Attr::of_int("axis", 3)});
  return net.node("Add", {net.node("Mul", {x, cos}), net.node("Mul", {other, sin})});
}

// Makes a table of cosines or sines, by position.
std::string angles(Net& net, bool sine) {
  constexpr int64_t kPositions = 128;
  std::vector<float> values;
  for (int64_t p = 0; p < kPositions; ++p)
    for (int64_t i = 0; i < kPart; ++i) {
      const double angle = static_cast<double>(p) *
                           std::pow(10000.0, -2.0 * static_cast<double>(i % (kPart / 2)) / kPart);
      values.push_back(static_cast<float>(sine ? std::sin(angle) : std::cos(angle)));
    }
  return net.constant(floats({kPositions, kPart}, values));
}

}  // namespace

GraphBuilder squeezenet(int64_t size) {
  Net net("squeezenet", 100);
  net.graph().input("x", PFRT_DTYPE_FLOAT32, {1, 3, size, size});
  std::string x = pool(net, conv(net, "x", 3, 64, 3, 2, 0));
  x = pool(net, fire(net, fire(net, x, 64, 16, 64), 128, 16, 64));
  x = pool(net, fire(net, fire(net, x, 128, 32, 128), 256, 32, 128));
  x = fire(net, fire(net, x, 256, 48, 192), 384, 48, 192);
  x = fire(net, fire(net, x, 384, 64, 256), 512, 64, 256);
  x = conv(net, x, 512, 10, 1, 1, 0);
  net.graph().node("Flatten", {net.node("GlobalAveragePool", {x})}, {"y"});
  net.graph().output("y");
  return std::move(net.graph());
}

GraphBuilder encoder(int64_t tokens) {
  Net net("encoder", 200);
  net.graph().input("x", PFRT_DTYPE_FLOAT32, {1, tokens, kWidth});
  std::string x = "x";
  for (int layer = 0; layer < 2; ++layer) {
    Names parts;
    for (int i = 0; i < 3; ++i)
      parts.push_back(heads_of(net, net.linear(x, kWidth, kWidth), kHeads));
    const std::string mixed = net.linear(attend(net, parts[0], parts[1], parts[2]), kWidth, kWidth);
    x = layer_norm(net, net.node("Add", {x, mixed}));
    const std::string inner = net.node("Gelu", {net.linear(x, kWidth, kInner)});
    x = layer_norm(net, net.node("Add", {x, net.linear(inner, kInner, kWidth)}));
  }
  const std::string first =
      net.node("Gather", {x, net.constant(int64s({}, {0}))}, {Attr::of_int("axis", 1)});
  net.graph().node("Identity", {net.linear(first, kWidth, 10)}, {"y"});
  net.graph().output("y");
  return std::move(net.graph());
}

GraphBuilder decoder() {
  Net net("decoder", 300);
  GraphBuilder& graph = net.graph();
  graph.input("ids", PFRT_DTYPE_INT64, {1, 1});
  constexpr int64_t kGroups = 2;  // groups of queries that share keys and values
  const auto port = [](const char* when, const char* what, int layer) {
    return std::string(when) + "_" + what + "_" + std::to_string(layer);
  };
  for (int layer = 0; layer < 2; ++layer)
    for (const char* what : {"key", "value"})
      graph.input(port("past", what, layer), PFRT_DTYPE_FLOAT32, {1, kGroups, "P", kPart});
  const std::vector<Attr> rows = {Attr::of_int("axis", 0)};
  const std::string place =
      net.node("Gather", {net.node("Shape", {"past_key_0"}), net.constant(int64s({}, {2}))}, rows);
  const std::string cos = net.node("Gather", {angles(net, false), place}, rows);
  const std::string sin = net.node("Gather", {angles(net, true), place}, rows);
  std::string x = net.node("Gather", {net.weights({kDecoderWords, kWidth}, 1), "ids"}, rows);
  for (int layer = 0; layer < 2; ++layer) {
    const std::string in = root_norm(net, x);
    const auto part = [&](int64_t heads) {
      return heads_of(net, net.linear(in, kWidth, heads * kPart), heads);
    };
    const std::string query = rotated(net, part(kHeads), cos, sin);
    const auto remembered = [&](const char* what, const std::string& fresh) {
      const std::string present = port("present", what, layer);
      graph.node("Concat", {port("past", what, layer), fresh}, {present},
                 {Attr::of_int("axis", 2)});
      // Each group's queries share [1, groups, 1, all, part].
      return net.node("Unsqueeze", {present, net.shape({2})});
    };
    const std::string keys = remembered("key", rotated(net, part(kGroups), cos, sin));
    const std::string values = remembered("value", part(kGroups));
    const std::string grouped = net.reshaped(query, {1, kGroups, kHeads / kGroups, 1, kPart});
    const std::string scores =
        net.node("Mul", {net.node("MatMul", {grouped, net.turned(keys, {0, 1, 2, 4, 3})}),
                         net.number(1 / std::sqrt(static_cast<float>(kPart)))});
    const std::string shares = net.node("Softmax", {scores}, {Attr::of_int("axis", -1)});
    const std::string mixed = net.reshaped(net.node("MatMul", {shares, values}), {1, 1, kWidth});
    x = net.node("Add", {x, net.linear(mixed, kWidth, kWidth)});
    const std::string between = root_norm(net, x);
    const std::string gate = net.linear(between, kWidth, kInner);
    const std::string silu = net.node("Mul", {gate, net.node("Sigmoid", {gate})});
    const std::string up = net.linear(between, kWidth, kInner);
    x = net.node("Add", {x, net.linear(net.node("Mul", {silu, up}), kInner, kWidth)});
  }
  graph.node("Identity", {net.linear(root_norm(net, x), kWidth, kDecoderWords)}, {"logits"});
  graph.output("logits");
  for (int layer = 0; layer < 2; ++layer)
    for (const char* what : {"key", "value"}) graph.output(port("present", what, layer));
  return std::move(graph);
}

}  // namespace pfrt_test::wse
