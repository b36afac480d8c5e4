// SPDX-License-Identifier: Apache-2.0
//
// Brings values from devices to where the host, or the caller, wants them, with one copy call for
// each device. Thread-safe.
#pragma once

#include <vector>

#include "core/exec/run/run_types.h"

namespace pfrt {

// Copies tensors that live on a device to host memory, for the run of |control|; other values stay.
Status copy_to_host(const std::vector<ValuePtr*>& values, const RunControl& control);

// Does a complete run: runs |graph|, moves outputs between devices and host as |requests| ask, and
// waits until all devices are done. Outputs on the host that are wanted there stay in place.
Status run_whole(RunnableGraph& graph, std::vector<ValuePtr> inputs,
                 const std::vector<OutputRequest>& requests, const RunControl& control,
                 std::vector<ValuePtr>& outputs);

}  // namespace pfrt
