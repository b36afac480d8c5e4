// SPDX-License-Identifier: Apache-2.0
//
// What a run has computed: type, shape, the first elements, the highest scores, and how many are
// NaN.
#pragma once

#include <pyflame_rt/value.hpp>
#include <string>

#include "cxxapi/cli/print/json.h"

namespace cli {

// To stdout, each line after |indent|.
void print_value(const std::string& indent, const pyflame_rt::Value& value);
void write_value_json(const pyflame_rt::Value& value, Json* json);

}  // namespace cli
