// SPDX-License-Identifier: Apache-2.0
//
// The kind of work that an operator does, for the colours of a page. Pure functions.
#pragma once

#include <string_view>
#include <vector>

namespace cli {

constexpr std::string_view kOtherCategory = "other", kPortCategory = "port";

struct Category {
  std::string_view name, text;  // for style sheets and for people
};
std::vector<Category> categories();
std::string_view category_of(std::string_view domain, std::string_view op);

// Whether |name| is one of |names|, which are separated by blanks; "Reduce*" stands for all that
// begin so.
bool has_name(std::string_view names, std::string_view name);

}  // namespace cli
