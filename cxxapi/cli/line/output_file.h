// SPDX-License-Identifier: Apache-2.0
//
// Care for files that a command reads when it writes others.
#pragma once

#include <string>

namespace cli {

// UsageError when |out| is the file |in| by whatever name, links included: a typing error would
// cost the input. |remedy| ends the sentence.
void keep_input(const std::string& in, const std::string& out,
                const std::string& remedy = "give another file");

}  // namespace cli
