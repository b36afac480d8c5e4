// SPDX-License-Identifier: Apache-2.0
#include "providers/wse/schedule/llm.h"

#include <algorithm>

namespace pfrt::wse {
namespace {

// A model's widths on a PE, rounded up.
struct Share {
  Share(const Llama& model, int64_t side, int64_t all_tokens)
      : width(divide_up(model.width, side)),
        keys(divide_up(model.width * model.kv_heads / model.heads, side)),
        inner(divide_up(model.inner, side)),
        tokens(divide_up(all_tokens, side)) {}
  int64_t width, keys, inner, tokens;
};

// Norm of a vector that lies along y.
void norm_of_one(Schedule& s, int64_t n, int64_t group) {
  const Machine& m = s.machine();
  s.vectors("square", 1, n);
  s.register_join("sum", n);
  s.all_reduce("all-reduce of the norm", Axis::kY, 1, group);
  s.vectors("norm", 2, n);
  s.work("norm", m.map_setup + 2 * m.divide + m.square_root + 2 * m.scalar);
}

void feed_forward_of_one(Schedule& s, const Share& p, int64_t group) {
  const Machine& m = s.machine();
  gemv_local(s, {1, p.width, p.inner});
  gemv_local(s, {1, p.width, p.inner});
  s.all_reduce("all-reduce of up and gate", Axis::kY, 2 * p.inner, group);
  // x / (1 + exp(-x)), in a loop as the published program has it: over the model's width.
  s.scalar_loop("silu", p.width, m.loop_call + 2 * m.divide + 4 * m.scalar - m.map_call);
  s.vectors("gate", 1, p.inner);
  gemv(s, {1, p.inner, p.width}, Axis::kX, group);
  s.vectors("residual", 1, p.width);
}

// Norms of the tokens of a PE, which lie along y, a row of |n| elements each.
void norm_of_many(Schedule& s, int64_t tokens, int64_t n) {
  const Machine& m = s.machine();
  s.vectors("square", 1, tokens * n);
  s.loop("sum and norm", 3 * n, tokens);
  s.phase(PhaseKind::kCollective, "all-reduce of the norm", 0,
          [&](Grid& grid) { line_all_reduce(grid, m, Axis::kX, s.wavelets(tokens)); });
  s.scalar_loop("norm", tokens, 2 * m.divide + m.square_root + m.scalar);
}

void softmax_of_many(Schedule& s, int64_t tokens) {
  const Machine& m = s.machine();
  s.vectors("scale", 1, tokens * tokens);
  s.loop("softmax", 4 * tokens, tokens);
  s.scalar_loop("exponential", tokens * tokens, m.exponential + m.scalar);
  s.scalar_loop("reciprocal", tokens, m.divide);
  for (const std::string_view name : {"all-reduce of maxima", "all-reduce of sums"})
    s.phase(PhaseKind::kCollective, name, 0,
            [&](Grid& grid) { line_all_reduce(grid, m, Axis::kX, s.wavelets(tokens)); });
}

}  // namespace

void decode_layer(Schedule& s, const Llama& model, int64_t context, int64_t group) {
  const Machine& m = s.machine();
  const Share p(model, s.grid().columns(), context);
  norm_of_one(s, p.width, group);
  gemv_local(s, {1, p.width, p.width});
  gemv_local(s, {1, p.width, p.keys});
  gemv_local(s, {1, p.width, p.keys});
  s.all_reduce("all-reduce of q, k, v", Axis::kY, p.width + 2 * p.keys, group);
  s.vectors("rotate", 6, p.width / 2);
  s.vectors("rotate", 6, p.keys / 2);
  gemv(s, {1, p.width, p.tokens}, Axis::kX, group);
  s.vectors("scale", 1, p.tokens);
  s.register_join("maximum", p.tokens);
  s.all_reduce("all-reduce of maxima", Axis::kY, 1, group);
  s.vectors("subtract", 1, p.tokens);
  s.scalar_loop("exponential", p.tokens, m.divide + 3 * m.scalar);  // (1 + x / 256) ^ 4
  s.register_join("sum", p.tokens);
  s.all_reduce("all-reduce of sums", Axis::kY, 1, group);
  s.work("reciprocal", m.divide + m.map_setup);
  s.vectors("softmax", 1, p.tokens);
  gemv(s, {1, p.tokens, p.width}, Axis::kY, group);
  gemv(s, {1, p.width, p.width}, Axis::kX, group);
  s.vectors("residual", 1, p.width);
  norm_of_one(s, p.width, group);
  feed_forward_of_one(s, p, group);
}

void prefill_layer(Schedule& s, const Llama& model, int64_t tokens) {
  const Machine& m = s.machine();
  const Share p(model, s.grid().columns(), tokens);
  const auto product = [&](int64_t k, int64_t n, bool aligned) {
    GemmOptions options;
    options.aligned = aligned;
    gemm(s, {p.tokens, k, n}, options);
  };
  norm_of_many(s, p.tokens, p.width);
  product(p.width, p.width, false);
  product(p.width, p.keys, true);
  product(p.width, p.keys, true);
  s.loop("rotate", 6 * (p.width / 2 + p.keys / 2), p.tokens);
  gemm_transposed(s, {p.tokens, p.width, p.tokens});
  softmax_of_many(s, p.tokens);
  product(p.tokens, p.width, false);
  product(p.width, p.width, false);
  s.vectors("residual", 1, p.tokens * p.width);
  norm_of_many(s, p.tokens, p.width);
  product(p.width, p.inner, false);
  product(p.width, p.inner, true);
  s.scalar_loop("silu", p.tokens * p.inner, m.exponential + m.divide + m.scalar);
  s.vectors("gate", 1, p.tokens * p.inner);
  product(p.inner, p.width, false);
  s.vectors("residual", 1, p.tokens * p.width);
}

LlamaMemory llama_memory(const Llama& model, int64_t side, Arithmetic arithmetic) {
  const Share p(model, side, 1);
  const int64_t bytes = bytes_of(arithmetic);
  LlamaMemory out;
  out.weights =
      bytes * (2 * p.width * p.width + 2 * p.width * p.keys + 3 * p.width * p.inner + 2 * p.width);
  out.cache_token = bytes * 2 * p.keys;
  out.activations = bytes * (12 * p.width + 3 * p.inner);
  return out;
}

CacheCapacity cache_capacity(const LlamaMemory& memory, int64_t layers, int64_t side,
                             int64_t free_bytes) {
  const int64_t token = std::max<int64_t>(1, memory.cache_token * layers);
  const int64_t row = std::max<int64_t>(0, free_bytes / token);
  return {row * side, row};
}

}  // namespace pfrt::wse
