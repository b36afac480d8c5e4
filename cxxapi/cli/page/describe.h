// SPDX-License-Identifier: Apache-2.0
//
// Types, constants and attributes of a graph in a few words, clean and cut. Pure functions.
#pragma once

#include <pyflame_rt/graph.hpp>
#include <string>
#include <string_view>

namespace cli {

inline std::string_view view(pfrt_string s) { return {s.data, s.size}; }

// Writes "float32 [1,3,?]"; empty where nothing is known of the value.
std::string type_text(const pyflame_rt::Graph& graph, std::string_view value);

struct ConstantText {
  std::string full;   // "constant float32 [3] = 1, 2, 3"; elements only where they are few
  std::string brief;  // "1, 2, 3" or "[64,3,7,7]"
};
ConstantText constant_text(pfrt_value* value);

std::string attribute_text(const pfrt_attr& attr);

}  // namespace cli
