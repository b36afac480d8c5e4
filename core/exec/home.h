// SPDX-License-Identifier: Apache-2.0
//
// Brings values from devices to where the host, or the caller, wants them: one copy call for all
// that come from one device. Thread-safe.
#pragma once

#include <vector>

#include "core/exec/compiled.h"

namespace pfrt {

// Tensors that live on a device become copies in host memory; other values stay.
Status bring_home(const std::vector<ValuePtr*>& values, const RunControl& control);

// Puts |outputs| where |requests| want them as far as devices are concerned. What is on the host
// and is wanted there stays where it is.
Status deliver(const std::vector<OutputRequest>& requests, std::vector<ValuePtr>& outputs,
               const RunControl& control);

// Makes |transfers|; a failure is blamed on the provider whose device it was.
Status run_transfers(Transfers& transfers, const RunControl& control);

}  // namespace pfrt
