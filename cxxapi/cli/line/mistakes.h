// SPDX-License-Identifier: Apache-2.0
//
// Messages for somebody who mistyped a command line. Pure functions.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace cli {

// The name in |known| that |word| is most likely meant to be: one that begins with it, or one that
// differs by a few letters. Empty when there is none.
std::string nearest(const std::string& word, const std::vector<std::string>& known);
// Why |app| refused the command line. If an option or command is unknown, with the nearest one that
// exists.
std::string explain(const CLI::ParseError& error, const CLI::App& app);

}  // namespace cli
