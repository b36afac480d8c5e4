// SPDX-License-Identifier: Apache-2.0
//
// Shared checks of the attributes of com.microsoft's transformer operators, with one wording.
#pragma once

#include <string_view>
#include <vector>

#include "core/op/engine/rewriter.h"

namespace pfrt {

inline constexpr std::string_view kMs = "com.microsoft";

inline constexpr int64_t kMostHeads = 1 << 20;

// Checks attribute |name|, a number of heads.
Status check_heads(Rewriter& rewriter, std::string_view name);
// Fail when the attribute is set, or the input present: only other providers of ONNX Runtime
// support it.
Status refuse_attr(Rewriter& rewriter, std::string_view name);
Status refuse_input(Rewriter& rewriter, size_t i, std::string_view name);
// |inputs| without absent ones at the end.
std::vector<ValueId> trimmed(std::vector<ValueId> inputs);

}  // namespace pfrt
