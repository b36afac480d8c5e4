// SPDX-License-Identifier: Apache-2.0
//
// The rules that plug-ins are tested for, by their stable names. Immutable data.
#pragma once

#include <string_view>
#include <vector>

namespace cli::check {

struct Rule {
  std::string_view name;    // "feature-function"
  std::string_view demand;  // duty of a plug-in
  std::string_view fix;     // the nearest fix when the duty is not met
};

// All rules, in the order in which they are printed.
const std::vector<Rule>& rules();

}  // namespace cli::check
