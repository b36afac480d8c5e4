// SPDX-License-Identifier: Apache-2.0
//
// What the rules around Attention share. Pure.
#pragma once

#include <vector>

#include "core/ir/graph.h"

namespace pfrt {

// All attributes of an Attention in canonical form, with |scale|; is_causal = 0 is the first.
std::vector<Attribute> attention_attrs(double scale);

}  // namespace pfrt
