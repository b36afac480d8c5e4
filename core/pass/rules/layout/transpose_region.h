// SPDX-License-Identifier: Apache-2.0
//
// Moves transposes through the graph. Around a value that exists in two orders of dimensions, the
// nodes that could work on either are gathered; each then works on the one that leaves the fewest
// bytes to be transposed in all, which is a minimum cut between the producers and users tied to one
// order and those tied to the other.
#pragma once

#include <string_view>

#include "core/pass/engine/run_rules.h"
#include "core/pass/rules/layout/transpose_propagation.h"

namespace pfrt {

// Rewrites the region around |value|, which permutes by |perm| (transpose_propagation.h). True when
// nodes were exchanged for permuted ones, which removes more than it adds: never more transposes
// than before, and fewer bytes. Without |may_insert| no transpose is put where none was.
Result<bool> permute_region(Editor& editor, ValueId value, const Perm& perm, bool may_insert,
                            const RuleContext& context);

}  // namespace pfrt
