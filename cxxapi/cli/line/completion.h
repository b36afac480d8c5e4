// SPDX-License-Identifier: Apache-2.0
//
// Completion of the command line in shells, made from the definitions that parse it. Pure
// functions.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace cli {

// Returns the script that |shell|, which is bash, zsh or fish, reads to complete commands, options
// and values. An option of type FILE, FOLDER, PATH or NAME=FILE takes files, an option with a list
// of words takes those.
std::string completion_script(const CLI::App& app, const std::string& shell);

}  // namespace cli
