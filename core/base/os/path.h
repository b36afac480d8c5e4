// SPDX-License-Identifier: Apache-2.0
//
// Parts of a path, as text. Pure functions; thread-safe.
#pragma once

#include <string>

namespace pfrt::os {

// folder_of returns the folder part of |path| ("." when there is none), name_of the name part.
std::string folder_of(const std::string& path);
std::string name_of(const std::string& path);

}  // namespace pfrt::os
