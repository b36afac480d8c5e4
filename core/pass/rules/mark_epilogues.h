// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/pass/engine/config.h"
#include "core/pass/engine/run_rules.h"

namespace pfrt {

// Whether it computes an element from each of its input's, and keeps their type.
bool is_elementwise(const Node& node);

// Says of elementwise nodes after an operator that its step should do their work too (epilogue_of),
// where the provider agrees, and takes such marks away where they do not hold any more. |again|:
// the marks that are there were made with this configuration, and need not be asked for again.
Status mark_epilogues(Editor& editor, const FusionConfig& config, bool again, PassContext& context,
                      PassResult& result);

}  // namespace pfrt
