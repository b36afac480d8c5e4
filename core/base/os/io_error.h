// SPDX-License-Identifier: Apache-2.0
//
// Statuses for failed calls of the operating system. Thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "core/base/status.h"

namespace pfrt::os {

// |code| is errno. The status is NOT_FOUND, OUT_OF_MEMORY or IO, with "|what| '|path|': why".
Status io_error(std::string_view what, const std::string& path, int code);

// INVALID_ARGUMENT for a path that the system would cut, because it has a NUL character in it.
Status check_path(std::string_view what, const std::string& path);

}  // namespace pfrt::os
