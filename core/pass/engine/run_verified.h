// SPDX-License-Identifier: Apache-2.0
//
// Verifies a pass: results before and after are compared, and a difference is traced by bisection
// to one application of one rule, which is undone and reported; the pass goes on without it.
#pragma once

#include <memory>
#include <vector>

#include "core/pass/engine/pass.h"

namespace pfrt {

// |context.difference| is set. |graph| becomes the result of the pass without the applications
// found wrong, which are added to |undone| and told in warnings. A rule that is wrong at several
// places is blocked everywhere; a pass that is wrong apart from its rules is undone completely.
Status run_verified(Pass& pass, std::shared_ptr<Graph>& graph, PassContext& context,
                    PassResult& result, std::vector<Application>& undone);

}  // namespace pfrt
