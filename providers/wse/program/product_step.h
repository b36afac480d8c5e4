// SPDX-License-Identifier: Apache-2.0
//
// Values of MatMul, Gemm and Conv: what the host's tensors are as products of matrices, and the
// vector operations after them. Thread-safe.
#pragma once

#include "providers/wse/place/layer.h"

namespace pfrt::wse {

// |call| is a MatMul, Gemm or Conv that refusal() took. False once |parallel| says to stop.
bool run_product(const Call& call, const Mapping& mapping, const Parallel& parallel);

}  // namespace pfrt::wse
