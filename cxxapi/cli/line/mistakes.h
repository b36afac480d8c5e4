// SPDX-License-Identifier: Apache-2.0
//
// Messages for somebody who mistyped a command line. Pure functions.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace cli {

// Returns the name in |known| that |word| is most likely meant to be: a name that begins with it,
// or that differs by a few letters. Empty when there is none.
std::string nearest(const std::string& word, const std::vector<std::string>& known);
// Says why |app| refused the command line. For an unknown option or command it adds the nearest one
// that exists.
std::string explain(const CLI::ParseError& error, const CLI::App& app);

}  // namespace cli
