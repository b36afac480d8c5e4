// SPDX-License-Identifier: Apache-2.0
//
// The input of a layout: the sizes of boxes, and the links between them.
#pragma once

#include <cstddef>

namespace cli {

struct Size {
  double width = 0, height = 0;
};

// A link to a box that takes |value| from the box that makes it. Links of one value share their way
// down.
struct Link {
  size_t from = 0, to = 0, value = 0;
};

}  // namespace cli
