// SPDX-License-Identifier: Apache-2.0
//
// Checks that a file is a complete shared object. The system's loader believes the headers: mapping
// a file that was cut short ends the process. Thread-safe.
#pragma once

#include <string>

#include "core/base/status.h"

namespace pfrt::os {

// PLUGIN where the file is no shared object for this machine, or ends before its headers say.
Status check_shared_object(const std::string& path);

}  // namespace pfrt::os
