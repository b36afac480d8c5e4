// SPDX-License-Identifier: Apache-2.0
//
// Parts of a path, as text, and where its links lead. Thread-safe.
#pragma once

#include <optional>
#include <string>

namespace pfrt::os {

// folder_of returns the folder part of |path| ("." when there is none), name_of the name part.
std::string folder_of(const std::string& path);
std::string name_of(const std::string& path);

// The file or folder that |path| leads to, with no link, "." or ".." in its path; nothing, with the
// reason in errno, where there is none.
std::optional<std::string> resolved(const std::string& path);

}  // namespace pfrt::os
