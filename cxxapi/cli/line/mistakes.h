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
// Whether |app| has a command of this name.
bool has_command(const CLI::App& app, const std::string& name);
// Says that there is no command |name|.
std::string explain_command(const CLI::App& app, const std::string& name);

}  // namespace cli
