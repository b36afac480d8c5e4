// SPDX-License-Identifier: Apache-2.0
//
// The environment variables that the library and its providers read. Nothing but the environment is
// read.
#pragma once

namespace cli {

// Throws UsageError for a value that would be ignored or fail later, naming the variable, its value
// and the values it may have. Folders of PFRT_PLUGIN_PATH are left to the library, which warns, and
// to doctor.
void check_variables();

}  // namespace cli
