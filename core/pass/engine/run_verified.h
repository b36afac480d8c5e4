// SPDX-License-Identifier: Apache-2.0
//
// A pass that proves itself: results before and after are compared, and what made a difference is
// found by bisection down to one application of one rule, undone and reported; the pass goes on
// without it.
#pragma once

#include <memory>
#include <vector>

#include "core/pass/engine/pass.h"

namespace pfrt {

// |context.difference| is there. |graph| becomes what the pass makes of it without what was found
// wrong, which is added to |undone| and told in warnings. A rule that is wrong at several places is
// blocked everywhere; a pass that is wrong beyond what its rules do is undone as a whole.
Status run_verified(Pass& pass, std::shared_ptr<Graph>& graph, PassContext& context,
                    PassResult& result, std::vector<Application>& undone);

}  // namespace pfrt
