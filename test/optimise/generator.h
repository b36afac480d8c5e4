// SPDX-License-Identifier: Apache-2.0
//
// Random whole models. The two numbers give the same model on every machine.
#pragma once

#include <string_view>

#include "test/optimise/model.h"

namespace pfrt_optimise {

// Makes model |index| of series |seed|, with one to thirteen feeds. Some hold NaN, infinities and
// denormals, in inputs or constants; some have no elements; some are a series of sizes that grow
// and shrink. Most families are of |kind| ("plain", "sizes"); "" = of any few kinds.
ModelSpec generate(uint64_t seed, uint64_t index, std::string_view kind = {});

}  // namespace pfrt_optimise
