// SPDX-License-Identifier: Apache-2.0
//
// The innermost loop of a step of one sequence: a row times panels, several panels at a time, so
// that no addition waits for the one before. Pure functions; thread-safe.
#pragma once

#include <cstdint>

namespace pfrt::cpu {

// c[p * width + j] += sum over k < kn of a[k] * b[(p * kn + k) * width + j] for p < panels: a chain
// of fused multiply-adds over k, as in MicroKernels.
using GemvFn = void (*)(int64_t kn, const float* a, const float* b, int64_t panels, float* c);

// nullptr where there is none for panels of |width|, or for the machine.
GemvFn gemv(int64_t width);

}  // namespace pfrt::cpu
