// SPDX-License-Identifier: Apache-2.0
//
// The variables of the process's environment that the library and its providers read. Reads the
// environment alone.
#pragma once

namespace cli {

// UsageError for a value that would be ignored or fail later: which variable, what it is, what it
// may be. Folders of PFRT_PLUGIN_PATH are left to the library, which warns, and to doctor.
void check_variables();

}  // namespace cli
