// SPDX-License-Identifier: Apache-2.0
//
// A picture of the wafers: each stage's rectangle in its place, the redder the longer its PEs are
// at work in a run.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "providers/wse/program/device_plan.h"

namespace pfrt::wse {
namespace {

constexpr double kWide = 760;  // points of a wafer

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else if (static_cast<unsigned char>(c) >= 32)
      out += c;
  }
  return out;
}

// A color from pale yellow at 0 to dark red at 1.
std::string heat(double share) {
  const double s = std::clamp(std::isfinite(share) ? share : 0, 0.0, 1.0);
  char text[8];
  std::snprintf(text, sizeof text, "#%02x%02x%02x", static_cast<unsigned>(255 - 90 * s),
                static_cast<unsigned>(245 - 225 * s), static_cast<unsigned>(200 - 170 * s));
  return text;
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

std::string box(double x, double y, double w, double h, const std::string& fill,
                const std::string& title) {
  return message("<rect x=\"", number(x), "\" y=\"", number(y), "\" width=\"", number(w),
                 "\" height=\"", number(h), "\" fill=\"", fill,
                 "\" stroke=\"#555\" stroke-width=\"0.5\"><title>", title, "</title></rect>\n");
}

std::string label(double x, double y, int size, std::string_view text) {
  return message("<text x=\"", number(x), "\" y=\"", number(y), "\" font-size=\"", size,
                 "\" font-family=\"sans-serif\">", escaped(text), "</text>\n");
}

// Cycles of a PE's datapath in a run.
double busy_of(const Placement& plan, const Stage& stage) {
  double out = 0;
  for (const uint32_t i : stage.layers) out += plan.mappings[i].spent.compute;
  return out;
}

}  // namespace

std::string plan_svg(const Target& target, const Placement& plan) {
  const double columns = static_cast<double>(target.fabric.columns);
  const double rows = static_cast<double>(target.fabric.rows);
  const double scale = kWide / std::max(columns, rows) /
                       std::sqrt(static_cast<double>(std::max<int64_t>(1, target.chips.columns)));
  const double width = columns * scale, height = rows * scale, gap = 24, top = 56;
  const double all_wide = static_cast<double>(target.chips.columns) * (width + gap) + gap;
  const double all_high = top + static_cast<double>(target.chips.rows) * (height + gap);
  double most = 1;
  for (const Stage& stage : plan.stages) most = std::max(most, busy_of(plan, stage));
  std::string out = message("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ",
                            number(std::max(all_wide, 640.0)), " ", number(all_high), "\">\n");
  out += label(gap, 20, 13,
               message("simulated ", target.machine.identity(), ", ", name_of(target.arithmetic)));
  out += label(gap, 40, 12,
               message("PEs at work, from none (pale) to ", with_commas(whole(most)),
                       " cycles a run (dark red)"));
  for (int64_t chip = 0; chip < target.chips.count(); ++chip) {
    const int64_t column = chip % target.chips.columns, row = chip / target.chips.columns;
    const double x = gap + static_cast<double>(column) * (width + gap);
    const double y = top + static_cast<double>(row) * (height + gap);
    out += box(x, y, width, height, "#f4f4f4", message("wafer ", chip));
    for (size_t s = 0; s < plan.stages.size(); ++s) {
      const Stage& stage = plan.stages[s];
      if (stage.chip != chip) continue;
      std::string title;
      for (const uint32_t i : stage.layers)
        title += message(escaped(plan.layers[i].name), ": ",
                         with_commas(whole(plan.mappings[i].cycles)), " cycles\n");
      const double left = x + static_cast<double>(stage.rect.x - target.fabric.x) * scale;
      const double above = y + static_cast<double>(stage.rect.y - target.fabric.y) * scale;
      const double side = static_cast<double>(stage.rect.columns) * scale;
      out += box(left, above, side, static_cast<double>(stage.rect.rows) * scale,
                 heat(busy_of(plan, stage) / most), title);
      if (side > 46) out += label(left + 3, above + 11, 9, plan.layers[stage.layers.front()].name);
    }
  }
  return out + "</svg>\n";
}

}  // namespace pfrt::wse
