// SPDX-License-Identifier: Apache-2.0
//
// The places of boxes and lines in a drawn graph: boxes in ranks, one below the other, each below
// its predecessors, and lines that run downwards past the boxes between. After Sugiyama, Tagawa and
// Toda, "Methods for Visual Understanding of Hierarchical System Structures" (1981), with
// coordinates by isotonic regression. Pure functions; time grows with boxes and links, but for
// sorting.
#pragma once

#include <cstddef>
#include <vector>

#include "cxxapi/cli/page/boxes.h"

namespace cli {

struct Point {
  double x = 0, y = 0;
};

// The middle of a box's upper edge.
struct Place {
  Point top;
  size_t rank = 0;
};

// A line from point to point downwards: straight where x stays, else a curve between two ranks.
struct Line {
  size_t value = 0;
  std::vector<Point> points;
  bool arrives = false;  // ends at a box
  bool cut = false;      // one end of a link that is too far to be drawn whole
};

struct Rank {
  double top = 0, bottom = 0;
};

struct Layout {
  std::vector<Place> boxes;  // in the order of the argument
  std::vector<Line> lines;
  std::vector<Rank> ranks;
  double width = 0, height = 0;
};

// Lays out boxes and links. |values| is above every Link::value. Links that close a circle are cut,
// and so are the farthest ones where drawing all whole would take far more lines than there are
// boxes.
Layout lay_out(const std::vector<Size>& boxes, const std::vector<Link>& links, size_t values);

}  // namespace cli
