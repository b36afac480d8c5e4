// SPDX-License-Identifier: Apache-2.0
//
// The functions recurrent operators name in their |activations|, applied to blocks. Immutable;
// thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/status.h"
#include "providers/cpu/kernels/recurrent/activation_vectors.h"
#include "providers/kit/node.h"

namespace pfrt::cpu {

enum class ActivationKind : uint8_t {
  kAffine,
  kElu,
  kHardSigmoid,
  kLeakyRelu,
  kRelu,
  kScaledTanh,
  kSigmoid,
  kSoftplus,
  kSoftsign,
  kTanh,
  kThresholdedRelu,
};

struct Activation {
  ActivationKind kind = ActivationKind::kTanh;
  double alpha = 0, beta = 0;
  const ActivationVectors* vectors = nullptr;  // functions for float32 in vectors; null: none

  template <typename T>
  void apply(T* x, int64_t n) const;
};

// The |count| activations of |node|. Names are compared without regard to case; activation_alpha
// and activation_beta are given out, in order, to the functions that have such a coefficient.
Result<std::vector<Activation>> activations_of(const SnapshotNode& node, size_t count);

extern template void Activation::apply(float*, int64_t) const;
extern template void Activation::apply(double*, int64_t) const;

}  // namespace pfrt::cpu
