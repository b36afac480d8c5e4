// SPDX-License-Identifier: Apache-2.0
//
// Tells whose failure a code is and which remedy helps; plugin.h has the rule for providers. Pure.
#pragma once

#include "core/base/status.h"

namespace pfrt {

enum class Fault {
  kNone,      // the caller's, the model's or nobody's: it is returned as it is
  kMemory,    // caches are released, then it is tried once more
  kDevice,    // the device is opened again
  kProvider,  // the next provider takes over
};
Fault fault_of(Code code);

}  // namespace pfrt
