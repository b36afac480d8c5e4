// SPDX-License-Identifier: Apache-2.0
//
// What pools of numbers and pools of quantized numbers share: the type of the output, and the cost.
// Pure functions.
#pragma once

#include "core/op/engine/inference.h"

namespace pfrt {

// Input 0 under a window: attributes kernel_shape, strides, pads, ceil_mode.
Status infer_pool(Inference& inference);
double pool_flops(const Inference& inference);
// One element for each batch and channel of input 0.
Status infer_global_pool(Inference& inference);

}  // namespace pfrt
