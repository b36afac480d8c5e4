// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/recurrent/activation.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <type_traits>

#include "providers/cpu/kernel/kernel.h"

namespace pfrt::cpu {
namespace {

struct Named {
  std::string_view name;
  Activation standard;
  int coefficients;  // it has: none, alpha, or alpha and beta
};

constexpr Named kNamed[] = {
    {"affine", {ActivationKind::kAffine, 1.0, 0.0}, 2},
    {"elu", {ActivationKind::kElu, 1.0, 0.0}, 1},
    {"hardsigmoid", {ActivationKind::kHardSigmoid, 0.2, 0.5}, 2},
    {"leakyrelu", {ActivationKind::kLeakyRelu, 0.01, 0.0}, 1},
    {"relu", {ActivationKind::kRelu, 0.0, 0.0}, 0},
    {"scaledtanh", {ActivationKind::kScaledTanh, 1.0, 1.0}, 2},
    {"sigmoid", {ActivationKind::kSigmoid, 0.0, 0.0}, 0},
    {"softplus", {ActivationKind::kSoftplus, 0.0, 0.0}, 0},
    {"softsign", {ActivationKind::kSoftsign, 0.0, 0.0}, 0},
    {"tanh", {ActivationKind::kTanh, 0.0, 0.0}, 0},
    {"thresholdedrelu", {ActivationKind::kThresholdedRelu, 1.0, 0.0}, 1},
};

bool same_name(std::string_view given, std::string_view lower) {
  return std::ranges::equal(given, lower, [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
  });
}

template <typename T, typename Fn>
void map(T* x, int64_t n, Fn fn) {
  for (int64_t i = 0; i < n; ++i) x[i] = fn(x[i]);
}

}  // namespace

template <typename T>
void Activation::apply(T* x, int64_t n) const {
  if constexpr (std::is_same_v<T, float>) {
    if (vectors != nullptr && kind == ActivationKind::kSigmoid) return vectors->sigmoid(x, n);
    if (vectors != nullptr && kind == ActivationKind::kTanh) return vectors->tanh(x, n);
  }
  const T a = static_cast<T>(alpha), b = static_cast<T>(beta);
  switch (kind) {
    case ActivationKind::kAffine:
      return map(x, n, [=](T v) { return a * v + b; });
    case ActivationKind::kElu:
      return map(x, n, [=](T v) { return v < T{0} ? a * std::expm1(v) : v; });
    case ActivationKind::kHardSigmoid:
      return map(x, n, [=](T v) {
        const T line = a * v + b;
        return line < T{0} ? T{0} : line > T{1} ? T{1} : line;
      });
    case ActivationKind::kLeakyRelu:
      return map(x, n, [=](T v) { return v < T{0} ? a * v : v; });
    case ActivationKind::kRelu:
      return map(x, n, [](T v) { return v < T{0} ? T{0} : v; });
    case ActivationKind::kScaledTanh:
      return map(x, n, [=](T v) { return a * std::tanh(b * v); });
    case ActivationKind::kSigmoid:
      return map(x, n, [](T v) { return T{1} / (T{1} + std::exp(-v)); });
    case ActivationKind::kSoftplus:
      return map(x, n,
                 [](T v) { return std::log1p(std::exp(-std::fabs(v))) + (v > T{0} ? v : T{0}); });
    case ActivationKind::kSoftsign:
      return map(x, n, [](T v) { return v / (T{1} + std::fabs(v)); });
    case ActivationKind::kTanh:
      return map(x, n, [](T v) { return std::tanh(v); });
    case ActivationKind::kThresholdedRelu:
      return map(x, n, [=](T v) { return v >= a ? v : T{0}; });
  }
}

template void Activation::apply(float*, int64_t) const;
template void Activation::apply(double*, int64_t) const;

Result<std::vector<Activation>> activations_of(const SnapshotNode& node, size_t count) {
  const pfrt_snapshot_attr* names = node.attr("activations");
  if (names == nullptr || names->type != PFRT_ATTR_STRINGS || names->count != count)
    return kernel_error("activations must be a list of ", count, " names");
  const auto alphas = node.attr_floats("activation_alpha");
  const auto betas = node.attr_floats("activation_beta");
  size_t alpha = 0, beta = 0;
  std::vector<Activation> list;
  for (size_t i = 0; i < count; ++i) {
    const std::string_view name = view(names->strings[i]);
    const auto* const known =
        std::ranges::find_if(kNamed, [&](const Named& n) { return same_name(name, n.name); });
    if (known == std::end(kNamed))
      return error(Code::kUNSUPPORTED, "activation '", name,
                   "' is none of Affine, Elu, HardSigmoid, LeakyRelu, Relu, ScaledTanh, Sigmoid, "
                   "Softplus, Softsign, Tanh, ThresholdedRelu");
    Activation& a = list.emplace_back(known->standard);
    a.vectors = ActivationVectors::here();
    if (known->coefficients > 0 && alpha < alphas.size())
      a.alpha = static_cast<double>(alphas[alpha++]);
    if (known->coefficients > 1 && beta < betas.size()) a.beta = static_cast<double>(betas[beta++]);
  }
  return list;
}

}  // namespace pfrt::cpu
