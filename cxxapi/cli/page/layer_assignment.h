// SPDX-License-Identifier: Apache-2.0
//
// The first step of a layout: the rank of each box, and the links to cut. Pure functions.
#pragma once

#include <cstddef>
#include <vector>

#include "cxxapi/cli/page/boxes.h"

namespace cli {

struct Ranking {
  std::vector<size_t> rank;  // of each box
  std::vector<bool> cut;     // for each link; links that are not cut go down by at least one rank
  size_t ranks = 0;
};

Ranking rank_boxes(size_t boxes, const std::vector<Link>& links, size_t values);

}  // namespace cli
