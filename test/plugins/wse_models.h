// SPDX-License-Identifier: Apache-2.0
//
// Models for the wafer-scale provider, with random weights: SqueezeNet, a transformer encoder and a
// LLaMA-shaped decoder.
#pragma once

#include <cmath>

#include "test/capi/client.h"

namespace pfrt_test::wse {

// A graph under construction. Its values have names, and layers add their own weights.
class Net {
 public:
  Net(const char* name, uint32_t seed) : graph_(name), seed_(seed) {}
  GraphBuilder& graph() { return graph_; }

  std::string node(const char* op, const std::vector<std::string>& inputs,
                   const std::vector<Attr>& attrs = {}) {
    const std::string out = fresh();
    graph_.node(op, inputs, {out}, attrs);
    return out;
  }
  std::vector<std::string> split(const std::string& x, size_t parts, int64_t axis) {
    std::vector<std::string> out;
    while (out.size() < parts) out.push_back(fresh());
    graph_.node(
        "Split", {x}, out,
        {Attr::of_int("axis", axis), Attr::of_int("num_outputs", static_cast<int64_t>(parts))});
    return out;
  }
  std::string constant(const Array& value) {
    const std::string out = fresh();
    graph_.constant(out, value);
    return out;
  }
  std::string number(float value) { return constant(floats({}, {value})); }
  std::string shape(std::vector<int64_t> dims) {
    const auto count = static_cast<int64_t>(dims.size());
    return constant(int64s({count}, std::move(dims)));
  }
  // Adds weights that keep sums of |fan_in| products near |scale|.
  std::string weights(std::vector<int64_t> dims, int64_t fan_in, float scale = 1) {
    size_t count = 1;
    for (const int64_t d : dims) count *= static_cast<size_t>(d);
    std::vector<float> values = random_floats(count, ++seed_);
    for (float& v : values) v *= 1.7F * scale / std::sqrt(static_cast<float>(fan_in));
    return constant(floats(std::move(dims), values));
  }
  std::string linear(const std::string& x, int64_t in, int64_t out) {
    return node("MatMul", {x, weights({in, out}, in)});
  }
  std::string reshaped(const std::string& x, std::vector<int64_t> dims) {
    return node("Reshape", {x, shape(std::move(dims))});
  }
  std::string turned(const std::string& x, std::vector<int64_t> order) {
    return node("Transpose", {x}, {Attr::of_ints("perm", std::move(order))});
  }

 private:
  std::string fresh() { return "v" + std::to_string(next_++); }

  GraphBuilder graph_;
  uint32_t seed_;
  int next_ = 0;
};

// SqueezeNet 1.1 with 10 classes, on images of |size| x |size|.
GraphBuilder squeezenet(int64_t size);
// A transformer of two layers on [1, tokens, width], with 10 scores of the first token as output.
GraphBuilder encoder(int64_t tokens);
// A decoder of two layers with rotary positions, grouped queries and caches. It makes logits [1, 1,
// kDecoderWords] of ids [1, 1].
constexpr int64_t kDecoderWords = 60;
GraphBuilder decoder();

}  // namespace pfrt_test::wse
