// SPDX-License-Identifier: Apache-2.0
//
// What a person who typed a wrong command line should read. Pure functions.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace cli {

// That of |known| which |word| most likely stands for: one that it begins, or one a few letters
// away; empty when there is none.
std::string nearest(const std::string& word, const std::vector<std::string>& known);
// Why |app| refused the command line, with the nearest option or command where one is unknown.
std::string explain(const CLI::ParseError& error, const CLI::App& app);

}  // namespace cli
