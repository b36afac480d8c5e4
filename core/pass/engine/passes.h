// SPDX-License-Identifier: Apache-2.0
//
// The built-in passes.
#pragma once

#include <memory>

#include "core/pass/engine/config.h"

namespace pfrt {

std::unique_ptr<Pass> constant_folding_pass(ConstantFoldingConfig config = {});
std::unique_ptr<Pass> dead_code_pass(DceConfig config = {});
std::unique_ptr<Pass> cse_pass(CseConfig config = {});
// |level| selects which of the pass's rules are applied.
std::unique_ptr<Pass> fusion_pass(FusionConfig config = {}, OptLevel level = OptLevel::kAll);
std::unique_ptr<Pass> layout_pass(LayoutConfig config = {});
// This pass has no level: it runs where it is asked for.
std::unique_ptr<Pass> dataflow_pass(DataflowConfig config = {});

}  // namespace pfrt
