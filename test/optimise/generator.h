// SPDX-License-Identifier: Apache-2.0
//
// Whole models at random: the same for the same two numbers, on every machine.
#pragma once

#include <string_view>

#include "test/optimise/model.h"

namespace pfrt_optimise {

// Model |index| of series |seed|, with one to thirteen feeds. Some hold NaN, infinities and
// denormals, in inputs or constants; some have no elements; some are a series of sizes that grow
// and shrink. |kind|: most families are of that one ("plain", "sizes"); "" = of any few kinds.
ModelSpec generate(uint64_t seed, uint64_t index, std::string_view kind = {});

}  // namespace pfrt_optimise
