// SPDX-License-Identifier: Apache-2.0
//
// See direct_pointwise.cc. Pure functions; thread-safe.
#pragma once

#include "providers/cpu/kernels/conv/geometry.h"

namespace pfrt::cpu {

// Whether a convolution of planes, one- or two-dimensional, is faster so.
bool direct_pointwise_takes(const ConvGeometry& geometry);
// Makes the kernel for float32, with weights as pack_direct_weights packs them.
Kernel direct_pointwise_kernel(const ConvGeometry& geometry, bool has_bias);

}  // namespace pfrt::cpu
