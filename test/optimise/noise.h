// SPDX-License-Identifier: Apache-2.0
//
// Shows how sensitive a model is to rounding: the model with relative noise, a few times larger
// than rounding, after each node that makes floating-point numbers, bodies included.
#pragma once

#include "test/optimise/model.h"

namespace pfrt_optimise {

ModelSpec with_noise(const ModelSpec& model, uint64_t seed);

}  // namespace pfrt_optimise
