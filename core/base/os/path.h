// SPDX-License-Identifier: Apache-2.0
//
// Parts of a path, as text. Pure functions; thread-safe.
#pragma once

#include <string>

namespace pfrt::os {

// The folder part of |path| ("." when there is none), and the name part.
std::string folder_of(const std::string& path);
std::string name_of(const std::string& path);

}  // namespace pfrt::os
