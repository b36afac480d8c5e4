// SPDX-License-Identifier: Apache-2.0
//
// Operators whose output's elements come from those at their place: what runs the functions of
// activations.h over tensors, and the rows.
#include <algorithm>
#include <type_traits>

#include "providers/wse/operators/activations.h"
#include "providers/wse/operators/families.h"
#include "providers/wse/operators/walk.h"

namespace pfrt::wse {
namespace elementwise {
namespace {

template <typename Function>
Function made(const Call& call) {
  if constexpr (std::is_constructible_v<Function, const Call&>)
    return Function(call);
  else
    return Function();
}

template <typename Function>
bool run_unary(const Call& call, std::string* why) {
  if (!sound(call, 1, why) || !output_has_dims(call, 0, call.in[0].dims, why)) return false;
  const Function function = made<Function>(call);
  const float* const x = call.in[0].as();
  float* const y = call.out[0].as();
  const int64_t count = call.out[0].count();
  with_rounding(call.arithmetic, [&](auto round) {
    for (int64_t i = 0; i < count; ++i) y[i] = function(round, round(x[i]));
  });
  return true;
}

// y = function(a, b), each of them repeated to the dimensions of y.
template <typename Function>
bool combine(const Call& call, const Tensor& a, const Tensor& b, std::string* why) {
  const Tensor& y = call.out[0];
  for (const Tensor* from : {&a, &b})
    if (!broadcasts(from->dims, y.dims))
      return fault(call, why, "an input of dimensions ", text_of(from->dims),
                   " does not broadcast to ", text_of(y.dims));
  with_rounding(call.arithmetic, [&](auto round) {
    float* to = y.as();
    each_row<2>(y.dims, {broadcast_strides(a.dims, y.dims), broadcast_strides(b.dims, y.dims)},
                [&](int64_t length, const auto& at, const auto& step) {
                  const float *const p = a.as() + at[0], *const q = b.as() + at[1];
                  for (int64_t i = 0; i < length; ++i)
                    to[i] = Function()(round, round(p[i * step[0]]), round(q[i * step[1]]));
                  to += length;
                });
  });
  return true;
}

template <typename Function>
bool run_binary(const Call& call, std::string* why) {
  return sound(call, 2, why) && combine<Function>(call, call.in[0], call.in[1], why);
}

// The first input alone, then what there is joined with each of the others.
template <typename Function>
bool run_variadic(const Call& call, std::string* why) {
  if (!sound(call, 1, why)) return false;
  const uint32_t count = call.node.input_count();
  if (count == 1) return run_unary<Identity>(call, why);
  for (uint32_t i = 1; i < count; ++i) {
    if (!has_input(call, i)) return fault(call, why, "input ", i, " is absent");
    if (!combine<Function>(call, i == 1 ? call.in[0] : call.out[0], call.in[i], why)) return false;
  }
  return true;
}

// The bias may be absent.
template <typename Function>
bool run_biased(const Call& call, std::string* why) {
  return has_input(call, 1) ? run_binary<Biased<Function>>(call, why)
                            : run_unary<Function>(call, why);
}

bool run_gelu(const Call& call, std::string* why) {
  return call.node.attr_string("approximate", "none") == "tanh" ? run_unary<GeluByTanh>(call, why)
                                                                : run_unary<Gelu>(call, why);
}

template <typename T>
void choose(const uint8_t* condition, const Tensor& yes, const Tensor& no, const Tensor& out,
            const Dims& condition_strides) {
  T* to = out.as<T>();
  each_row<3>(out.dims,
              {condition_strides, broadcast_strides(yes.dims, out.dims),
               broadcast_strides(no.dims, out.dims)},
              [&](int64_t length, const auto& at, const auto& step) {
                const T *const p = yes.as<T>() + at[1], *const q = no.as<T>() + at[2];
                for (int64_t i = 0; i < length; ++i)
                  to[i] = condition[at[0] + i * step[0]] != 0 ? p[i * step[1]] : q[i * step[2]];
                to += length;
              });
}

bool run_where(const Call& call, std::string* why) {
  if (!sound(call, 3, why)) return false;
  const Tensor& out = call.out[0];
  for (const Tensor& from : call.in.first(3))
    if (!broadcasts(from.dims, out.dims))
      return fault(call, why, "an input of dimensions ", text_of(from.dims),
                   " does not broadcast to ", text_of(out.dims));
  const auto* const condition = call.in[0].as<uint8_t>();
  const Dims strides = broadcast_strides(call.in[0].dims, out.dims);
  switch (dtype_size(out.dtype)) {
    case 1:
      choose<uint8_t>(condition, call.in[1], call.in[2], out, strides);
      break;
    case 4:
      choose<uint32_t>(condition, call.in[1], call.in[2], out, strides);
      break;
    default:
      choose<uint64_t>(condition, call.in[1], call.in[2], out, strides);
  }
  round_output(call, out);
  return true;
}

bool run_identity(const Call& call, std::string* why) {
  if (call.out.empty() || call.out[0].dtype == PFRT_DTYPE_FLOAT32)
    return run_unary<Identity>(call, why);
  if (!sound(call, 1, why) || !output_has_dims(call, 0, call.in[0].dims, why)) return false;
  const Tensor &x = call.in[0], &y = call.out[0];
  std::copy_n(x.data, tensor_bytes(y.dtype, y.count()), y.data);
  return true;
}

// ------------------------------------------------------------------------------------ refusals

std::string refuse_other_types(const SnapshotNode& node) { return refuse_types(node, kFloat); }

std::string refuse_where(const SnapshotNode& node) {
  return first_of({refuse_input(node, 0, kBool), refuse_unlike_output(node, 1, kMoved),
                   refuse_unlike_output(node, 2, kMoved)});
}

std::string refuse_identity(const SnapshotNode& node) {
  return refuse_unlike_output(node, 0, kMoved);
}

std::string refuse_gelu(const SnapshotNode& node) {
  const std::string_view how = node.attr_string("approximate", "none");
  if (how != "none" && how != "tanh")
    return message("Gelu approximated by '", how, "': 'none' and 'tanh' are taken here");
  return refuse_other_types(node);
}

// --------------------------------------------------------------------------------------- rows

// The work of a function: operations on vectors, and in scalar code what vectors have none for.
constexpr Work vectors(double operations) { return {.vector_operations = operations}; }
constexpr Work scalar_code(double vector_operations, double scalars, double divides,
                           double exponentials) {
  return {.vector_operations = vector_operations,
          .scalars = scalars,
          .divides = divides,
          .exponentials = exponentials};
}
// tanh(x) = 1 - 2 / (exp(2 x) + 1); erf(x) as a polynomial in 1 / (1 + p x) times exp(-x x).
constexpr double kTanhScalars = 3, kErfScalars = 9;

constexpr Operator of(std::string_view op, Work work,
                      bool (*run)(const Call& call, std::string* why), std::string_view domain = "",
                      std::string (*refuse)(const SnapshotNode& node) = refuse_other_types) {
  return {domain, op, Family::kElementwise, work, refuse, run};
}

constexpr Operator kOperators[] = {
    of("Add", vectors(1), run_binary<Add>),
    of("Sub", vectors(1), run_binary<Sub>),
    of("Mul", vectors(1), run_binary<Mul>),
    of("Div", scalar_code(0, 0, 1, 0), run_binary<Div>),
    // exp(b log(a))
    of("Pow", scalar_code(0, 1, 0, 2), run_binary<Pow>),
    of("Max", vectors(1), run_variadic<Max>),
    of("Min", vectors(1), run_variadic<Min>),
    of("PRelu", vectors(3), run_binary<PRelu>),
    of("Abs", vectors(1), run_unary<Abs>),
    of("Neg", vectors(1), run_unary<Neg>),
    of("Relu", vectors(1), run_unary<Relu>),
    of("LeakyRelu", vectors(2), run_unary<LeakyRelu>),
    of("Elu", scalar_code(2, 0, 0, 1), run_unary<Elu>),
    of("Sigmoid", scalar_code(2, 0, 1, 1), run_unary<Sigmoid>),
    of("HardSigmoid", vectors(4), run_unary<HardSigmoid>),
    of("HardSwish", vectors(5), run_unary<HardSwish>),
    of("Tanh", scalar_code(0, kTanhScalars, 1, 1), run_unary<Tanh>),
    of("Exp", scalar_code(0, 0, 0, 1), run_unary<Exp>),
    of("Log", scalar_code(0, 0, 0, 1), run_unary<Log>),
    of("Sqrt", {.vector_operations = 0, .square_roots = 1}, run_unary<Sqrt>),
    of("Reciprocal", scalar_code(0, 0, 1, 0), run_unary<Reciprocal>),
    of("Erf", scalar_code(0, kErfScalars, 1, 1), run_unary<Erf>),
    of("Gelu", scalar_code(4, kErfScalars, 1, 1), run_gelu, "", refuse_gelu),
    of("Clip", vectors(2), run_unary<Clip>),
    of("Floor", vectors(1), run_unary<Floor>),
    of("Ceil", vectors(1), run_unary<Ceil>),
    of("Round", vectors(1), run_unary<Round>),
    of("Softplus", scalar_code(4, 0, 0, 2), run_unary<Softplus>),
    of("Mish", scalar_code(5, kTanhScalars, 1, 3), run_unary<Mish>),
    of("Swish", scalar_code(4, 0, 1, 1), run_unary<Swish>),
    of("Identity", vectors(0), run_identity, "", refuse_identity),
    of("Cast", vectors(0), run_unary<Identity>),
    of("Where", vectors(1), run_where, "", refuse_where),
    of("Gelu", scalar_code(4, kErfScalars, 1, 1), run_unary<Gelu>, kMicrosoft),
    of("BiasGelu", scalar_code(5, kErfScalars, 1, 1), run_biased<Gelu>, kMicrosoft),
    of("FastGelu", scalar_code(9, kTanhScalars, 1, 1), run_biased<GeluByTanh>, kMicrosoft),
    of("QuickGelu", scalar_code(4, 0, 1, 1), run_unary<QuickGelu>, kMicrosoft),
};

}  // namespace
}  // namespace elementwise

std::span<const Operator> elementwise_operators() { return elementwise::kOperators; }

}  // namespace pfrt::wse
