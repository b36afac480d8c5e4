// SPDX-License-Identifier: Apache-2.0
//
// How much a model makes of rounding: the same model with relative noise after each node that makes
// floating-point numbers, bodies included, a few times larger than rounding.
#pragma once

#include "test/optimise/model.h"

namespace pfrt_optimise {

ModelSpec with_noise(const ModelSpec& model, uint64_t seed);

}  // namespace pfrt_optimise
