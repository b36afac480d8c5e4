// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/pass/config.h"
#include "core/pass/rules.h"

namespace pfrt {

// Says of elementwise nodes after an operator that its step should do their work too (tail_of),
// where the provider agrees, and takes such marks away where they do not hold any more.
Status mark_tails(Editor& editor, const FusionConfig& config, PassContext& context,
                  PassResult& result);

}  // namespace pfrt
