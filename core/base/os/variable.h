// SPDX-License-Identifier: Apache-2.0
//
// Variables of the process's environment. Thread-safe while nobody changes the environment.
#pragma once

namespace pfrt::os {

// The value of |name|; empty where it is not set, and in a process with more rights than the user
// who started it (setuid, file capabilities), which must not trust it.
const char* variable(const char* name);

}  // namespace pfrt::os
