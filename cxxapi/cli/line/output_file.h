// SPDX-License-Identifier: Apache-2.0
//
// Keeps a command from writing over the file that it reads.
#pragma once

#include <string>

namespace cli {

// Throws UsageError when |in| and |out| are the same file, also by different names or through a
// link: a mistyped command would destroy its input. |remedy| ends the message, which says what to
// do.
void keep_input(const std::string& in, const std::string& out,
                const std::string& remedy = "give another file");

}  // namespace cli
