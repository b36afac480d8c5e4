// SPDX-License-Identifier: Apache-2.0
//
// Whole models at random: the same for the same two numbers, on every machine.
#pragma once

#include "test/optimise/model.h"

namespace pfrt_optimise {

// Model |index| of series |seed|, with one to four feeds. Some hold NaN, infinities and denormals,
// in inputs or constants; some have no elements.
ModelSpec generate(uint64_t seed, uint64_t index);

}  // namespace pfrt_optimise
