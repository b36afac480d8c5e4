// SPDX-License-Identifier: Apache-2.0
//
// Options that providers add to a session's: read from their tables and checked against them. Pure
// except for calls of the table; thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "pyflame_rt/plugin.h"

namespace pfrt {

// The options that a provider declares, by its own names (without prefix).
Result<std::vector<pfrt_option_info>> provider_options(const pfrt_provider_table& table,
                                                       std::string_view name);
// Checks |text| as a value of option |name| of |schema|; |key| is its full name, for messages.
Status check_option(const std::vector<pfrt_option_info>& schema, std::string_view key,
                    std::string_view name, std::string_view text);

}  // namespace pfrt
