// SPDX-License-Identifier: Apache-2.0
//
// A run of a graph on trial inputs, which ends after a time.
#pragma once

#include <vector>

#include "core/base/os/progress.h"
#include "core/exec/compiled_graph.h"

namespace pfrt {

// Fails after |seconds|, since loops may be endless, and where |progress| was cancelled or is late.
// |outputs| are all of the graph's, in the host's memory.
Status run_trial(CompiledGraph& graph, const std::vector<ValuePtr>& inputs, double seconds,
                 const Progress& progress, std::vector<ValuePtr>& outputs);

}  // namespace pfrt
