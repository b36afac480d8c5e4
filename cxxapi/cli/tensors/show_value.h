// SPDX-License-Identifier: Apache-2.0
//
// Prints a result of a run: type, shape, the first elements, the highest scores, and the number of
// NaN.
#pragma once

#include <pyflame_rt/value.hpp>
#include <string>

#include "cxxapi/cli/print/json.h"

namespace cli {

// Prints to stdout, each line after |indent|.
void print_value(const std::string& indent, const pyflame_rt::Value& value);
void write_value_json(const pyflame_rt::Value& value, Json* json);

}  // namespace cli
