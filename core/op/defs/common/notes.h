// SPDX-License-Identifier: Apache-2.0
//
// What was followed where the standard's text, its reference implementation and ONNX Runtime
// differ. Pure; thread-safe.
#pragma once

#include <string_view>

namespace pfrt {

// Empty where there is nothing to say.
std::string_view operator_note(std::string_view domain, std::string_view name);

}  // namespace pfrt
