// SPDX-License-Identifier: Apache-2.0
//
// Options that plug-ins declare, as providers add them to a session's and services take them: read
// from their tables and checked against them. Pure except for calls of the table; thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "pyflame_rt/plugin.h"

namespace pfrt {

// The options that plug-in |name| declares by these functions of its table, by its own names
// (without prefix).
Result<std::vector<pfrt_option_info>> declared_options(
    size_t (*option_count)(void), pfrt_code (*option_at)(size_t index, pfrt_option_info* out_info),
    std::string_view name);
// Checks |text| as a value of option |name| of |schema|; |key| is its full name, for messages that
// begin with |doing|.
Status check_option(const std::vector<pfrt_option_info>& schema, std::string_view doing,
                    std::string_view key, std::string_view name, std::string_view text);

}  // namespace pfrt
