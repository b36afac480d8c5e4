// SPDX-License-Identifier: Apache-2.0
//
// Notes on operators where the standard's text, its reference implementation and ONNX Runtime
// differ, and on which was followed. Pure; thread-safe.
#pragma once

#include <string_view>

namespace pfrt {

// Empty where there is no note.
std::string_view operator_note(std::string_view domain, std::string_view name);

}  // namespace pfrt
