// SPDX-License-Identifier: Apache-2.0
//
// Drawings as SVG, and the texts of their boxes as data for the page's script. Pure functions.
#pragma once

#include <string_view>
#include <vector>

#include "cxxapi/cli/page/drawing.h"
#include "cxxapi/cli/page/markup.h"

namespace cli {

std::vector<Size> box_sizes(const Drawing& drawing);
// Writes a drawing. Box 3 of drawing 0 has the id "<section>-0-3".
void write_svg(const Drawing& drawing, std::string_view section, size_t index, Markup* out);
void write_data(const std::vector<Drawing>& drawings, Markup* out);

}  // namespace cli
