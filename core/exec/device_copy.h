// SPDX-License-Identifier: Apache-2.0
//
// Brings values from devices to where the host, or the caller, wants them: one copy call for all
// that come from one device. Thread-safe.
#pragma once

#include <vector>

#include "core/exec/run/run_types.h"

namespace pfrt {

// Tensors that live on a device become copies in host memory; other values stay.
Status copy_to_host(const std::vector<ValuePtr*>& values);

// Puts |outputs| where |requests| want them as far as devices are concerned. What is on the host
// and is wanted there stays where it is.
Status place_outputs(const std::vector<OutputRequest>& requests, std::vector<ValuePtr>& outputs);

}  // namespace pfrt
