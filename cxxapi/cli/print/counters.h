// SPDX-License-Identifier: Apache-2.0
//
// Figures that devices counted by themselves, for people and as JSON.
#pragma once

#include <pyflame_rt/session.hpp>
#include <string>
#include <vector>

#include "cxxapi/cli/print/json.h"

namespace cli {

// Prints a table to stdout; nothing where nothing was counted.
void print_counters(const std::vector<pyflame_rt::ExplainCounter>& counters);
// Writes the field "counters" of the object that is open.
void write_counters_json(const std::vector<pyflame_rt::ExplainCounter>& counters, Json* json);

}  // namespace cli
