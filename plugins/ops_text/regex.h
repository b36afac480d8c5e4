// SPDX-License-Identifier: Apache-2.0
//
// Regular expressions of attributes. Pure.
#pragma once

#include <re2/re2.h>

#include <memory>
#include <string>
#include <string_view>

#include "plugins/ops/onnx_op.h"

namespace pfrt::ops {

inline re2::StringPiece piece(pfrt_string words) { return {words.data, words.size}; }

// The compiled |pattern| of attribute |name|, or nullptr, and then |why| says what is wrong with
// it.
inline std::unique_ptr<re2::RE2> compiled(std::string_view name, pfrt_string pattern,
                                          re2::RE2::Options options, std::string& why) {
  options.set_log_errors(false);
  auto made = std::make_unique<re2::RE2>(piece(pattern), options);
  if (made->ok()) return made;
  why = "attribute '" + std::string(name) + "' is '" + std::string(view(pattern)) +
        "', which is not in RE2's syntax: " + made->error();
  return nullptr;
}

}  // namespace pfrt::ops
