// SPDX-License-Identifier: Apache-2.0
//
// The table of operators: the rows of all families, one after the other.
#include "providers/wse/operators/operators.h"

#include "providers/wse/operators/families.h"

namespace pfrt::wse {
namespace table {
namespace {

std::vector<Operator> joined() {
  std::vector<Operator> all;
  for (const auto& family :
       {elementwise_operators(), row_operators(), norm_operators(), window_operators(),
        move_operators(), cut_operators(), attention_operators(), rotary_operators()})
    all.insert(all.end(), family.begin(), family.end());
  return all;
}

}  // namespace
}  // namespace table

std::span<const Operator> operators() {
  static const std::vector<Operator> all = table::joined();
  return all;
}

const Operator* find_operator(std::string_view domain, std::string_view op) {
  for (const Operator& row : operators())
    if (row.op == op && row.domain == domain) return &row;
  return nullptr;
}

std::string_view name_of(Family family) {
  constexpr std::string_view kNames[] = {"elementwise", "rows",   "windows",
                                         "move",        "lookup", "attention"};
  return kNames[static_cast<size_t>(family)];
}

}  // namespace pfrt::wse
