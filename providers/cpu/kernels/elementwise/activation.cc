// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "providers/cpu/kernels/elementwise/elementwise.h"
#include "providers/cpu/kernels/elementwise/unary.h"

namespace pfrt::cpu {
namespace {

template <typename T>
T sigmoid(T x) {
  return T{1} / (T{1} + std::exp(-x));
}

// log(1 + e^x) without overflow.
template <typename T>
T softplus(T x) {
  return std::log1p(std::exp(-std::fabs(x))) + (x > T{0} ? x : T{0});
}

template <typename T>
T clamped(T x, T low, T high) {
  return x < low ? low : x > high ? high : x;
}

template <typename T>
T hard_sigmoid(T x, T alpha, T beta) {
  return clamped(alpha * x + beta, T{0}, T{1});
}

template <typename T>
T relu(T x) {
  return x < T{0} ? T{0} : x;
}

template <typename T>
T scaled_elu(T x, T alpha, T gamma) {
  return gamma * (x < T{0} ? alpha * std::expm1(x) : x);
}

template <typename T>
T celu(T x, T alpha) {
  return x < T{0} ? alpha * std::expm1(x / alpha) : x;
}

// erfc is accurate in the negative tail, where 1 + erf cancels.
template <typename T>
T gelu(T x) {
  return T{0.5} * x * std::erfc(x * static_cast<T>(-0.70710678118654752440));
}

template <typename T>
T gelu_tanh(T x) {
  const T inner =
      static_cast<T>(0.79788456080286535588) * (x + static_cast<T>(0.044715) * x * x * x);
  return T{0.5} * x * (T{1} + std::tanh(inner));
}

template <typename T>
T shrink(T x, double lambd, double bias) {
  const double value = static_cast<double>(x);
  if (value < -lambd) return converted<T>(value + bias);
  if (value > lambd) return converted<T>(value - bias);
  return T{0};
}

Result<Kernel> make_gelu(const KernelRequest& node) {
  const std::string_view form = node.attr_string("approximate", "none");
  if (form == "tanh")
    return make_unary(node, unary_loops<[](auto x) { return gelu_tanh(x); }, On::kFloat>(), {}, 20);
  if (form == "none")
    return make_unary(node, unary_loops<[](auto x) { return gelu(x); }, On::kFloat>(), {}, 20);
  return kernel_error("attribute approximate is '", form, "': none or tanh");
}

template <typename T>
T as(double coefficient) {
  return static_cast<T>(coefficient);
}

Coefficients hard_sigmoid_line(const SnapshotNode& node) {
  return {node.attr_float("alpha", 0.2f), node.attr_float("beta", 0.5f)};
}
Coefficients leaky_slope(const SnapshotNode& node) { return {node.attr_float("alpha", 0.01f)}; }
Coefficients alpha_of_one(const SnapshotNode& node) { return {node.attr_float("alpha", 1.0f)}; }
Coefficients selu_scales(const SnapshotNode& node) {
  return {node.attr_float("alpha", 1.67326319217681884765625f),
          node.attr_float("gamma", 1.05070102214813232421875f)};
}
Coefficients shrink_bounds(const SnapshotNode& node) {
  return {node.attr_float("lambd", 0.5f), node.attr_float("bias", 0.0f)};
}

using C = Coefficients;

constexpr KernelRow kRows[] = {
    unary_row<[](auto x) { return relu(x); }, On::kAny, 1>("Relu", kFloats | kSignedInts,
                                                           "relu_ref"),
    unary_row<[](auto x) { return sigmoid(x); }, On::kFloat, 12>("Sigmoid", kFloats, "sigmoid_ref"),
    unary_row<[](auto x, const C& c) {
      return hard_sigmoid(x, as<decltype(x)>(c.a), as<decltype(x)>(c.b));
    },
              On::kFloat, 4, hard_sigmoid_line>("HardSigmoid", kFloats, "hard_sigmoid_ref"),
    unary_row<[](auto x) { return x * hard_sigmoid(x, decltype(x){1} / 6, decltype(x){0.5}); },
              On::kFloat, 5>("HardSwish", kFloats, "hard_swish_ref"),
    unary_row<[](auto x, const C& c) { return x < 0 ? as<decltype(x)>(c.a) * x : x; }, On::kFloat,
              2, leaky_slope>("LeakyRelu", kFloats, "leaky_relu_ref"),
    unary_row<[](auto x, const C& c) {
      return scaled_elu(x, as<decltype(x)>(c.a), decltype(x){1});
    },
              On::kFloat, 12, alpha_of_one>("Elu", kFloats, "elu_ref"),
    unary_row<[](auto x, const C& c) {
      return scaled_elu(x, as<decltype(x)>(c.a), as<decltype(x)>(c.b));
    },
              On::kFloat, 12, selu_scales>("Selu", kFloats, "selu_ref"),
    unary_row<[](auto x, const C& c) { return celu(x, as<decltype(x)>(c.a)); }, On::kFloat, 12,
              alpha_of_one>("Celu", kFloats, "celu_ref"),
    unary_row<[](auto x, const C& c) { return as<decltype(x)>(c.a) < x ? x : decltype(x){0}; },
              On::kFloat, 1, alpha_of_one>("ThresholdedRelu", kFloats, "thresholded_relu_ref"),
    unary_row<[](auto x) { return softplus(x); }, On::kFloat, 20>("Softplus", kFloats,
                                                                  "softplus_ref"),
    unary_row<[](auto x) { return x / (decltype(x){1} + std::fabs(x)); }, On::kFloat, 3>(
        "Softsign", kFloats, "softsign_ref"),
    unary_row<[](auto x) { return x * std::tanh(softplus(x)); }, On::kFloat, 35>("Mish", kFloats,
                                                                                 "mish_ref"),
    unary_row<[](auto x, const C& c) { return x * sigmoid(as<decltype(x)>(c.a) * x); }, On::kFloat,
              13, alpha_of_one>("Swish", kFloats, "swish_ref"),
    unary_row<[](auto x, const C& c) { return shrink(x, c.a, c.b); }, On::kAny, 3, shrink_bounds>(
        "Shrink", kNumbers, "shrink_ref"),
    {"", "Gelu", kFloats, "gelu_ref", "generic", nullptr, make_gelu},
};

}  // namespace

std::span<const KernelRow> activation_rows() { return kRows; }

}  // namespace pfrt::cpu
