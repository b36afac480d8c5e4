// SPDX-License-Identifier: Apache-2.0
//
// Sigmoid and Tanh of float32 in vectors, in place: within 2 and 1 units in the last place
// (test/providers/cpu/recurrent_test.cc), and a result does not depend on its
// neighbours. Pure functions; thread-safe.
#pragma once

#include <cstdint>

namespace pfrt::cpu {

struct ActivationVectors {
  void (*sigmoid)(float* x, int64_t n);
  void (*tanh)(float* x, int64_t n);

  // nullptr where the machine, or PFRT_ISA, has no AVX2.
  static const ActivationVectors* here();
};

}  // namespace pfrt::cpu
