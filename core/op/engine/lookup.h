// SPDX-License-Identifier: Apache-2.0
//
// Finds the rows of built-in operators by name and opset. Thread-safe.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/op/engine/operator_def.h"

namespace pfrt {

// Domain of the host's own operators on strings (string_numbers.h).
inline constexpr std::string_view kStringDomain = "pyflame_rt.strings";

// The built-in row for |name| in |domain| at |opset|, or nullptr.
const OperatorDef* find_operator(std::string_view domain, std::string_view name, int64_t opset);
// Whether there is a row of that name at any opset.
bool is_built_in(std::string_view domain, std::string_view name);
// The newest known opset of a domain; 0 for an unknown domain.
int64_t newest_opset(std::string_view domain);

}  // namespace pfrt
