// SPDX-License-Identifier: Apache-2.0
//
// Shared parts of pools of numbers and of quantized numbers: the type of the output, and the cost.
// Pure functions.
#pragma once

#include "core/op/engine/inference.h"

namespace pfrt {

// Pools input 0 by a window: attributes kernel_shape, strides, pads, ceil_mode.
Status infer_pool(Inference& inference);
double pool_flops(const Inference& inference);
// Pools each channel of input 0 to one element.
Status infer_global_pool(Inference& inference);

}  // namespace pfrt
