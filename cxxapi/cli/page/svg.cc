// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/page/svg.h"

#include <algorithm>

#include "cxxapi/cli/page/layout.h"

namespace cli {
namespace {

// Pixels for each of the columns() of a text, in the page's two fonts.
constexpr double kBold = 7.3, kSmall = 6.1;
constexpr size_t kOpLimit = 30;  // characters of an operator's name

std::string op_text(const Box& box) { return clean(box.op, kOpLimit); }

void write_line(const Line& line, Markup* out) {
  const auto pair = [out](double x, double y) { out->number(x).raw(" ").number(y); };
  out->raw("M");
  pair(line.points[0].x, line.points[0].y);
  for (size_t i = 1; i < line.points.size(); ++i) {
    const Point &from = line.points[i - 1], &to = line.points[i];
    if (from.x == to.x) {
      // Vertical pieces that follow each other are drawn as one.
      if (i + 1 < line.points.size() && line.points[i + 1].x == to.x) continue;
      out->raw("V").number(to.y);
      continue;
    }
    const double middle = (from.y + to.y) / 2;
    out->raw("C");
    pair(from.x, middle);
    out->raw(" ");
    pair(to.x, middle);
    out->raw(" ");
    pair(to.x, to.y);
  }
}

// All lines of a value make one path, so that the page highlights all of them when a reader points
// at one.
void write_values(const Drawing& drawing, const Layout& layout, bool cut, Markup* out) {
  std::vector<std::vector<const Line*>> lines(drawing.values.size());
  for (const Line& line : layout.lines) {
    if (line.cut == cut) lines[line.value].push_back(&line);
  }
  for (size_t v = 0; v < lines.size(); ++v) {
    if (lines[v].empty()) continue;
    const ValueNote& note = drawing.values[v];
    out->raw("<path class=\"e");
    if (cut) out->raw(" cut");
    out->raw("\" data-v=\"").count(v).raw("\" d=\"");
    for (const Line* line : lines[v]) write_line(*line, out);
    out->raw("\"><title>").text(note.name).raw(" ").text(note.type);
    if (cut) out->raw(" (too far to draw: the line goes on elsewhere)");
    out->raw("</title></path>\n");
  }
}

// Writes the arrow heads.
void write_heads(const Layout& layout, Markup* out) {
  out->raw("<path class=\"t\" d=\"");
  for (const Line& line : layout.lines) {
    if (!line.arrives) continue;
    const Point& end = line.points.back();
    out->raw("M").number(end.x).raw(" ").number(end.y).raw("l-3-6h6z");
  }
  out->raw("\"/>\n");
}

void write_text(const char* what, std::string_view text, double x, double y, Markup* out) {
  out->raw("<text");
  if (*what != 0) out->raw(" class=\"").text(what).raw("\"");
  out->raw(" x=\"").number(x).raw("\" y=\"").number(y).raw("\">").text(text).raw("</text>");
}

// Writes the rest of a <g> element whose id has been written.
void write_box(const Box& box, const Size& size, const Place& place, Markup* out) {
  out->raw(" class=\"n k-").text(box.category);
  if (box.only_here) out->raw(" only");
  if (!box.bodies.empty()) out->raw(" bodies");
  out->raw("\" transform=\"translate(").number(place.top.x - size.width / 2).raw(" ");
  out->number(place.top.y).raw(")\"><title>").text(box.op).raw(" ").text(box.name);
  out->raw("</title><rect width=\"").number(size.width).raw("\" height=\"").number(size.height);
  out->raw("\" rx=\"").count(box.is_node ? 5 : 12).raw("\"/>");
  const double middle = size.width / 2;
  double y = 17;
  write_text("", op_text(box), middle, y, out);
  if (!box.label.empty()) write_text("s", box.label, middle, y += 13, out);
  if (!box.constants.empty()) write_text("s w", clean(box.constants, 30), middle, y += 13, out);
  out->raw("</g>\n");
}

}  // namespace

std::vector<Size> box_sizes(const Drawing& drawing) {
  std::vector<Size> out;
  for (const Box& box : drawing.boxes) {
    const auto small = [](const std::string& text) {
      return kSmall * static_cast<double>(columns(clean(text, 30)));
    };
    const double wide = std::max({kBold * static_cast<double>(columns(op_text(box))),
                                  small(box.label), small(box.constants)});
    const int lines = 1 + !box.label.empty() + !box.constants.empty();
    out.push_back({std::max(56.0, wide + 18), 13.0 * lines + 12});
  }
  return out;
}

void write_svg(const Drawing& drawing, std::string_view section, size_t index, Markup* out) {
  const std::vector<Size> sizes = box_sizes(drawing);
  const Layout layout = lay_out(sizes, drawing.links, drawing.values.size());
  out->raw("<svg role=\"img\" data-w=\"").number(layout.width).raw("\" data-h=\"");
  out->number(layout.height).raw("\" width=\"").number(layout.width).raw("\" height=\"");
  out->number(layout.height).raw("\" viewBox=\"0 0 ").number(layout.width).raw(" ");
  out->number(layout.height).raw("\">\n");
  write_values(drawing, layout, false, out);
  write_values(drawing, layout, true, out);
  write_heads(layout, out);
  for (size_t i = 0; i < sizes.size(); ++i) {
    out->raw("<g id=\"").text(section).raw("-").count(index).raw("-").count(i).raw("\"");
    write_box(drawing.boxes[i], sizes[i], layout.boxes[i], out);
  }
  out->raw("</svg>\n");
}

void write_data(const std::vector<Drawing>& drawings, Markup* out) {
  Json json;
  json.list();
  for (const Drawing& drawing : drawings) {
    json.object().key("values").list();
    for (const ValueNote& value : drawing.values) {
      json.list().value(value.name).value(value.type).value(value.constant).end();
    }
    json.end().key("boxes").list();
    for (const Box& box : drawing.boxes) {
      json.object().field("op", box.op).field("name", box.name);
      if (!box.domain.empty()) json.field("domain", box.domain);
      json.key("in").list();
      for (const auto& v : box.inputs) json.value(v ? static_cast<int64_t>(*v) : int64_t{-1});
      json.end().key("out").list();
      for (const size_t v : box.outputs) json.value(v);
      json.end();
      if (!box.attributes.empty()) {
        json.key("attrs").list();
        for (const auto& [name, text] : box.attributes) json.list().value(name).value(text).end();
        json.end();
      }
      if (!box.bodies.empty()) {
        json.key("bodies").list();
        for (const auto& [name, body] : box.bodies) json.list().value(name).value(body).end();
        json.end();
      }
      json.end();
    }
    json.end().end();
  }
  json.end();
  out->data(json);
}

}  // namespace cli
