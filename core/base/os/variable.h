// SPDX-License-Identifier: Apache-2.0
//
// The variables of the environment. Thread-safe while nobody changes the environment.
#pragma once

namespace pfrt::os {

// What |name| is set to; empty where it is not set, and in a process with more rights than the user
// who started it (setuid, file capabilities), where none of them is to be trusted.
const char* variable(const char* name);

}  // namespace pfrt::os
