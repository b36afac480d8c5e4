// SPDX-License-Identifier: Apache-2.0
//
// A picture of the wafers: each stage's rectangle in its place, the redder the longer its PEs are
// at work in a run, and the scale of these colours. It has a background of its own, light or dark
// as the reader's system is, so that it is readable in any page.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "providers/wse/program/device_plan.h"

namespace pfrt::wse {
namespace {

constexpr double kWide = 760;      // points of a wafer
constexpr double kDarkHeat = 0.7;  // letters on a colour of this share or more are white

// Attributes of what is the paper's or a letter's colour, which the style changes in the dark.
constexpr std::string_view kInk = "class=\"ink\" fill=\"#1b1f24\"";
constexpr std::string_view kBare =
    "class=\"bare\" fill=\"#f0f0f0\" stroke=\"#808080\" stroke-width=\"0.5\"";
constexpr std::string_view kDark =
    "<style>@media (prefers-color-scheme: dark) { .pfrt_wafer .paper { fill: #0d1117 } "
    ".pfrt_wafer .ink { fill: #e6edf3 } .pfrt_wafer .bare { fill: #262c36 } }</style>\n";

// Bytes of the character that |text| begins with; 0 where XML has none such.
size_t character_bytes(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const size_t size = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (size == 0 || lead > 0xf4 || size > text.size()) return 0;
  if (size == 1) return lead < 0x20 || lead == 0x7f ? 0 : 1;
  for (size_t i = 1; i < size; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  const bool overlong = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90);
  const bool beyond = (lead == 0xed && byte(1) > 0x9f) || (lead == 0xf4 && byte(1) > 0x8f);
  const bool reserved = lead == 0xef && byte(1) == 0xbf && byte(2) >= 0xbe;  // U+FFFE and U+FFFF
  return overlong || beyond || reserved ? 0 : size;
}

// Text of at most |most| characters. A character that XML has not, or that begins a line, becomes
// U+FFFD.
std::string escaped(std::string_view text, size_t most) {
  std::string out;
  for (size_t count = 0; !text.empty(); ++count) {
    const size_t size = character_bytes(text);
    if (count + 1 == most && std::max<size_t>(size, 1) < text.size()) return out + "\u2026";
    const std::string_view c = text.substr(0, size);
    if (size == 0)
      out += "\ufffd";
    else if (c == "<")
      out += "&lt;";
    else if (c == ">")
      out += "&gt;";
    else if (c == "&")
      out += "&amp;";
    else if (c == "\"")
      out += "&quot;";
    else
      out += c;
    text.remove_prefix(std::max<size_t>(size, 1));
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

// |look| has attributes that style it; |title| is markup.
std::string box(double x, double y, double w, double h, std::string_view look,
                const std::string& title) {
  return message("<rect x=\"", number(x), "\" y=\"", number(y), "\" width=\"", number(w),
                 "\" height=\"", number(h), "\" ", look, "><title>", title, "</title></rect>\n");
}

std::string label(double x, double y, int size, std::string_view look, std::string_view text,
                  size_t most = 200) {
  return message("<text x=\"", number(x), "\" y=\"", number(y), "\" font-size=\"", size,
                 "\" font-family=\"sans-serif\" ", look, ">", escaped(text, most), "</text>\n");
}

// Cycles of a PE's datapath in a run.
double busy_of(const Placement& plan, const Stage& stage) {
  double out = 0;
  for (const uint32_t i : stage.layers) out += plan.mappings[i].spent.compute;
  return out;
}

// The scale of the colours, from no cycle to |most|.
std::string legend(const Target& target, double most, double x, double y) {
  constexpr int kSteps = 50, kMarks = 4;
  constexpr double kScaleWide = 500, kScaleHigh = 12;
  char micros[64];
  std::snprintf(micros, sizeof micros, "%.4g us a run at %.3f GHz",
                1e6 * most / target.machine.clock_hz, target.machine.clock_hz / 1e9);
  std::string out =
      label(x, y, 12, kInk,
            message("colour: cycles a run in which a PE of these layers computes; ",
                    with_commas(whole(most)), " cycles are ", std::string_view(micros)));
  for (int i = 0; i < kSteps; ++i) {  // each goes on below the next, so that no seam shows
    const double wide = kScaleWide / kSteps;
    out += message("<rect x=\"", number(x + wide * i), "\" y=\"", number(y + 7), "\" width=\"",
                   number(wide + (i + 1 < kSteps ? 1 : 0)), "\" height=\"", number(kScaleHigh),
                   "\" fill=\"", heat((i + 0.5) / kSteps), "\"/>\n");
  }
  for (int i = 0; i <= kMarks; ++i) {
    const double share = static_cast<double>(i) / kMarks;
    const char* const anchor = i == 0 ? "start" : i == kMarks ? "end" : "middle";
    out += label(x + kScaleWide * share, y + 32, 11, message(kInk, " text-anchor=\"", anchor, "\""),
                 message(with_commas(whole(most * share)), i == kMarks ? " cycles" : ""));
  }
  out += box(x + kScaleWide + 24, y + 7, 14, kScaleHigh, kBare, "PEs without a layer");
  return out + label(x + kScaleWide + 44, y + 17, 11, kInk, "no layer");
}

// The stages in the order in which they are drawn. Those that take turns on the same PEs lie upon
// each other: the smaller upon the larger, and of one size the one that works the longest on top.
std::vector<size_t> order_of(const Placement& plan) {
  std::vector<size_t> out(plan.stages.size());
  for (size_t s = 0; s < out.size(); ++s) out[s] = s;
  if (!plan.streaming) return out;
  const auto rank = [&](size_t s) {
    const Stage& stage = plan.stages[s];
    return std::pair(-stage.rect.columns * stage.rect.rows, busy_of(plan, stage));
  };
  std::ranges::stable_sort(out, [&](size_t a, size_t b) { return rank(a) < rank(b); });
  return out;
}

// What a stage's rectangle says of its layers.
std::string title_of(const Placement& plan, const Stage& stage) {
  constexpr size_t kMostLayers = 20, kMostLetters = 100;
  std::string out = message(with_commas(whole(busy_of(plan, stage))), " cycles at work\n");
  for (size_t i = 0; i < stage.layers.size(); ++i) {
    if (i == kMostLayers)
      return out + message("and ", stage.layers.size() - kMostLayers, " layers more");
    const uint32_t layer = stage.layers[i];
    out += message(escaped(plan.layers[layer].name, kMostLetters), ": ",
                   with_commas(whole(plan.mappings[layer].cycles)), " cycles\n");
  }
  return out;
}

}  // namespace

std::string plan_svg(const Target& target, const Placement& plan) {
  const double columns = static_cast<double>(target.fabric.columns);
  const double rows = static_cast<double>(target.fabric.rows);
  const double scale = kWide / std::max(columns, rows) /
                       std::sqrt(static_cast<double>(std::max<int64_t>(1, target.chips.columns)));
  const double width = columns * scale, height = rows * scale, gap = 24, top = 100;
  const double all_wide =
      std::max(640.0, static_cast<double>(target.chips.columns) * (width + gap) + gap);
  const double all_high = top + static_cast<double>(target.chips.rows) * (height + gap);
  double most = 1;
  for (const Stage& stage : plan.stages) most = std::max(most, busy_of(plan, stage));
  std::string out = message("<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"pfrt_wafer\" ",
                            "viewBox=\"0 0 ", number(all_wide), " ", number(all_high), "\">\n",
                            kDark, "<rect width=\"", number(all_wide), "\" height=\"",
                            number(all_high), "\" class=\"paper\" fill=\"#ffffff\"/>\n");
  out += label(gap, 20, 13, kInk,
               message("simulated ", target.machine.identity(), ", ", name_of(target.arithmetic),
                       plan.streaming ? "; layers take turns on the same PEs" : ""));
  out += legend(target, most, gap, 40);
  for (int64_t chip = 0; chip < target.chips.count(); ++chip) {
    const int64_t column = chip % target.chips.columns, row = chip / target.chips.columns;
    const double x = gap + static_cast<double>(column) * (width + gap);
    const double y = top + static_cast<double>(row) * (height + gap);
    out += label(x, y - 5, 11, kInk, message("wafer ", chip));
    out += box(x, y, width, height, kBare, message("wafer ", chip));
    for (const size_t s : order_of(plan)) {
      const Stage& stage = plan.stages[s];
      if (stage.chip != chip) continue;
      const double left = x + static_cast<double>(stage.rect.x - target.fabric.x) * scale;
      const double above = y + static_cast<double>(stage.rect.y - target.fabric.y) * scale;
      const double wide = static_cast<double>(stage.rect.columns) * scale;
      const double high = static_cast<double>(stage.rect.rows) * scale;
      const double share = busy_of(plan, stage) / most;
      out += box(left, above, wide, high,
                 message("fill=\"", heat(share), "\" stroke=\"#808080\" stroke-width=\"0.5\""),
                 title_of(plan, stage));
      if (!plan.streaming && wide > 46 && high > 14)
        out += label(left + 3, above + 11, 9,
                     share > kDarkHeat ? "fill=\"#ffffff\"" : "fill=\"#000000\"",
                     plan.layers[stage.layers.front()].name, static_cast<size_t>((wide - 6) / 5.2));
    }
  }
  return out + "</svg>\n";
}

}  // namespace pfrt::wse
