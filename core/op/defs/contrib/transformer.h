// SPDX-License-Identifier: Apache-2.0
//
// What com.microsoft's operators of transformers share: checks of their attributes with one
// wording.
#pragma once

#include <string_view>
#include <vector>

#include "core/op/engine/rewriter.h"

namespace pfrt {

inline constexpr std::string_view kMs = "com.microsoft";

inline constexpr int64_t kMostHeads = 1 << 20;

// Attribute |name| counts heads.
Status check_heads(Rewriter& rewriter, std::string_view name);
// Fails when the attribute is set, or the input there: only other providers of ONNX Runtime know
// it.
Status refuse_attr(Rewriter& rewriter, std::string_view name);
Status refuse_input(Rewriter& rewriter, size_t i, std::string_view name);
// Without absent inputs at the end.
std::vector<ValueId> trimmed(std::vector<ValueId> inputs);

}  // namespace pfrt
