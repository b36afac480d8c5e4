// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/pass/engine/config.h"
#include "core/pass/engine/run_rules.h"

namespace pfrt {

// Whether it computes an element from each element of its input, and keeps the type.
bool is_elementwise(const Node& node);

// Marks elementwise nodes after an operator whose step should do their work too (epilogue_of),
// where the provider agrees, and removes marks that no longer hold. |again|: present marks were
// made with this configuration, and need no new question.
Status mark_epilogues(Editor& editor, const FusionConfig& config, bool again, PassContext& context,
                      PassResult& result);

}  // namespace pfrt
