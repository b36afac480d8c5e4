// SPDX-License-Identifier: Apache-2.0
//
// Whether a file is a whole shared object. The system's loader believes the headers: mapping a file
// that was cut short ends the process. Thread-safe.
#pragma once

#include <string>

#include "core/base/status.h"

namespace pfrt::os {

// PLUGIN for what is no shared object of this machine or ends before its headers say that it does.
Status check_shared_object(const std::string& path);

}  // namespace pfrt::os
