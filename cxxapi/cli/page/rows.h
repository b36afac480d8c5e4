// SPDX-License-Identifier: Apache-2.0
//
// The middle steps of a layout: the items of each rank (boxes, and the lines that pass by them),
// their order, and their places. Pure functions.
#pragma once

#include <cstddef>
#include <vector>

#include "cxxapi/cli/page/boxes.h"
#include "cxxapi/cli/page/layer_assignment.h"

namespace cli {

// A box, or the place where a line passes a rank.
struct Item {
  Size size;
  size_t rank = 0;
  std::vector<size_t> up, down;  // items of the ranks above and below
};

// The places that a value's line passes, which are consecutive items.
struct Way {
  size_t from = 0, first = 0, count = 0;
};

struct Rows {
  std::vector<Item> items;  // boxes first
  size_t boxes = 0;
  std::vector<std::vector<size_t>> ranks;  // items from left to right
  std::vector<Way> ways;                   // of each value
};

Rows make_rows(const std::vector<Size>& boxes, const std::vector<Link>& links, size_t values,
               const Ranking& ranking);
// Orders each rank so that few lines cross.
void order_rows(Rows* rows);
// Returns the middle of each item, such that items of a rank keep their order and do not touch.
std::vector<double> place_rows(const Rows& rows);

}  // namespace cli
