// SPDX-License-Identifier: Apache-2.0
//
// Shared parts of the rules around Attention. Pure.
#pragma once

#include <vector>

#include "core/ir/graph.h"

namespace pfrt {

// All attributes of an Attention in canonical form, with |scale|; the first is is_causal = 0.
std::vector<Attribute> attention_attrs(double scale);

}  // namespace pfrt
