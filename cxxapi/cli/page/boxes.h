// SPDX-License-Identifier: Apache-2.0
//
// What a layout is made from: the sizes of boxes, and the links between them.
#pragma once

#include <cstddef>

namespace cli {

struct Size {
  double width = 0, height = 0;
};

// A box takes |value|, which another makes. Links of one value share their way down.
struct Link {
  size_t from = 0, to = 0, value = 0;
};

}  // namespace cli
