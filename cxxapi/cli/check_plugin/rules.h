// SPDX-License-Identifier: Apache-2.0
//
// The rules a plug-in is held to, by their stable names. Immutable data.
#pragma once

#include <string_view>
#include <vector>

namespace cli::check {

struct Rule {
  std::string_view name;    // "feature-function"
  std::string_view demand;  // what a plug-in must do
  std::string_view fix;     // the nearest fix when it does not
};

// In the order in which they are printed.
const std::vector<Rule>& rules();

}  // namespace cli::check
