// SPDX-License-Identifier: Apache-2.0
//
// The command line of the tool: every command with its options, help and examples.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace cli {

// Adds all commands to |app|. Parsing sets |action| to a function that runs the command and returns
// its exit code.
void define(CLI::App* app, std::function<int()>* action);

}  // namespace cli
