// SPDX-License-Identifier: Apache-2.0
//
// Brings values from devices to where the host, or the caller, wants them: one copy call for all
// that come from one device. Thread-safe.
#pragma once

#include <vector>

#include "core/exec/run/run_types.h"

namespace pfrt {

// Tensors that live on a device become copies in host memory, for the run of |control|; other
// values stay.
Status copy_to_host(const std::vector<ValuePtr*>& values, const RunControl& control);

// A whole run: |graph|'s, then outputs are put where |requests| want them as far as devices are
// concerned, and nothing of it is left to be done anywhere. What is on the host and is wanted there
// stays where it is.
Status run_whole(RunnableGraph& graph, std::vector<ValuePtr> inputs,
                 const std::vector<OutputRequest>& requests, const RunControl& control,
                 std::vector<ValuePtr>& outputs);

}  // namespace pfrt
