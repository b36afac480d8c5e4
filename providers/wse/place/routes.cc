// SPDX-License-Identifier: Apache-2.0
#include "providers/wse/place/routes.h"

#include <algorithm>
#include <bit>

namespace pfrt::wse {
namespace {

struct Step {
  int64_t x, y;
  uint8_t from, to;
};

// A step for each PE on the way.
std::vector<Step> way(const std::vector<Point>& points) {
  std::vector<Step> out;
  int64_t x = points.front().x, y = points.front().y;
  uint8_t in = kRamp;
  const auto go = [&](int64_t& at, int64_t end, uint8_t up, uint8_t down) {
    while (at != end) {
      const bool rising = at < end;
      out.push_back({x, y, in, rising ? up : down});
      in = rising ? down : up;
      at += rising ? 1 : -1;
    }
  };
  for (const Point& point : points) {
    go(x, point.x, kEast, kWest);
    go(y, point.y, kSouth, kNorth);
  }
  out.push_back({x, y, in, kRamp});
  return out;
}

std::string place(int64_t x, int64_t y) { return message("PE (", x, ",", y, ")"); }

struct Link {
  uint8_t out, in;
  int64_t dx, dy;
};
constexpr Link kLinks[] = {
    {kNorth, kSouth, 0, -1}, {kSouth, kNorth, 0, 1}, {kEast, kWest, 1, 0}, {kWest, kEast, -1, 0}};

}  // namespace

void Routes::add(int64_t x, int64_t y, int color, uint8_t from, uint8_t to) {
  Route& route = pes_[key(x, y)].routes[color];
  route.from |= from;
  route.to |= to;
}

void Routes::reserve(const Rect& rect, int count) { reserved_.emplace_back(rect, count); }

int Routes::reserved_at(int64_t x, int64_t y) const {
  int out = 0;
  for (const auto& [rect, count] : reserved_)
    if (x >= rect.x && x < rect.x + rect.columns && y >= rect.y && y < rect.y + rect.rows)
      out = std::max(out, count);
  return out;
}

bool Routes::connect(const Rect& from, const Rect& to, std::string* fault) {
  return connect({{from.center_x(), from.center_y()}, {to.center_x(), to.center_y()}}, fault);
}

bool Routes::connect(const std::vector<Point>& points, std::string* fault) {
  const std::vector<Step> steps = way(points);
  const auto most = static_cast<int>(machine_.free_colors());
  const auto taken = [&](const Step& s, int color) {
    const auto pe = pes_.find(key(s.x, s.y));
    return color < reserved_at(s.x, s.y) ||
           (pe != pes_.end() && pe->second.routes.count(color) != 0);
  };
  for (int color = 0; color < most; ++color) {
    if (std::any_of(steps.begin(), steps.end(), [&](const Step& s) { return taken(s, color); }))
      continue;
    for (const Step& s : steps) add(s.x, s.y, color, s.from, s.to);
    return true;
  }
  *fault = crowded(steps.front().x, steps.front().y, 0);
  int64_t worst = 0;
  for (const Step& s : steps) {
    const auto pe = pes_.find(key(s.x, s.y));
    const int64_t colors = reserved_at(s.x, s.y) + 1 +
                           (pe == pes_.end() ? 0 : static_cast<int64_t>(pe->second.routes.size()));
    if (colors <= worst) continue;
    worst = colors;
    *fault = crowded(s.x, s.y, colors);
  }
  if (worst <= most)
    *fault = message("no color is free on all PEs from ", place(steps.front().x, steps.front().y),
                     " to ", place(steps.back().x, steps.back().y), ": ", most,
                     " available, and each is taken somewhere on the way");
  return false;
}

std::string Routes::crowded(int64_t x, int64_t y, int64_t colors) const {
  return message(place(x, y), " needs ", colors, " colors, ", machine_.free_colors(),
                 " available (", static_cast<int>(machine_.colors), " minus ",
                 static_cast<int>(machine_.reserved_colors), " reserved by host I/O)");
}

std::string Routes::check_pe(int64_t x, int64_t y, const Pe& pe) const {
  if (x < 0 || y < 0 || x >= static_cast<int64_t>(machine_.usable_columns) ||
      y >= static_cast<int64_t>(machine_.usable_rows))
    return message(place(x, y), " lies outside the usable rectangle of ",
                   static_cast<int64_t>(machine_.usable_columns), "x",
                   static_cast<int64_t>(machine_.usable_rows), " PEs");
  const int64_t colors = reserved_at(x, y) + static_cast<int64_t>(pe.routes.size());
  if (colors > machine_.free_colors()) return crowded(x, y, colors);
  double in = 0, out = 0;
  for (const auto& [color, route] : pe.routes) {
    if (color < 0 || color >= static_cast<int>(machine_.colors))
      return message(place(x, y), " routes color ", color, "; a machine has 0 to ",
                     static_cast<int>(machine_.colors) - 1);
    if (color < reserved_at(x, y))
      return message(place(x, y), " routes color ", color,
                     ", which the algorithm that runs there has for itself: it has 0 to ",
                     reserved_at(x, y) - 1);
    if (std::popcount(route.from) > 1)
      return message(place(x, y), ": color ", color,
                     " is received from more than one direction; a router takes it from one");
    in += (route.to & kRamp) != 0 ? 1 : 0;
    out += (route.from & kRamp) != 0 ? 1 : 0;
  }
  const double queues_in = machine_.input_queues - machine_.reserved_queues;
  const double queues_out = machine_.output_queues - machine_.reserved_queues;
  if (in > queues_in || out > queues_out)
    return message(place(x, y), " needs ", in, " input and ", out, " output queues; it has ",
                   queues_in, " and ", queues_out, " beside the host's");
  return {};
}

// Checks that a wavelet that is sent to a neighbour is received there, in its color and from that
// side.
std::string Routes::check_sent(int64_t x, int64_t y, const Pe& pe) const {
  for (const auto& [color, route] : pe.routes)
    for (const Link& link : kLinks) {
      if ((route.to & link.out) == 0) continue;
      const Route* const other = route_at(x + link.dx, y + link.dy, color);
      if (other == nullptr || (other->from & link.in) == 0)
        return message(place(x, y), ": color ", color, " is sent to ",
                       place(x + link.dx, y + link.dy), ", which does not receive it");
    }
  return {};
}

// ... and what is received has to be sent.
std::string Routes::check_received(int64_t x, int64_t y, const Pe& pe) const {
  for (const auto& [color, route] : pe.routes)
    for (const Link& link : kLinks) {
      if ((route.from & link.out) == 0) continue;
      const Route* const other = route_at(x + link.dx, y + link.dy, color);
      if (other == nullptr || (other->to & link.in) == 0)
        return message(place(x, y), ": color ", color, " is received from ",
                       place(x + link.dx, y + link.dy), ", which does not send it");
    }
  return {};
}

const Routes::Route* Routes::route_at(int64_t x, int64_t y, int color) const {
  const auto pe = pes_.find(key(x, y));
  if (pe == pes_.end()) return nullptr;
  const auto route = pe->second.routes.find(color);
  return route == pe->second.routes.end() ? nullptr : &route->second;
}

std::string Routes::check_rectangles() const {
  const auto columns = static_cast<int64_t>(machine_.usable_columns);
  const auto rows = static_cast<int64_t>(machine_.usable_rows);
  for (const auto& [rect, count] : reserved_)
    if (rect.x < 0 || rect.y < 0 || rect.columns < 1 || rect.rows < 1 ||
        rect.x + rect.columns > columns || rect.y + rect.rows > rows)
      return message("the rectangle ", rect.columns, "x", rect.rows, " at (", rect.x, ",", rect.y,
                     ") leaves the usable ", columns, "x", rows, " PEs");
  return {};
}

std::string Routes::check() const {
  std::string fault = check_rectangles();
  std::vector<int64_t> keys;
  keys.reserve(pes_.size());
  for (const auto& [at, pe] : pes_) keys.push_back(at);
  std::sort(keys.begin(), keys.end());
  // The senders of a way say best where it leads, so receivers are asked last.
  for (const auto check : {&Routes::check_pe, &Routes::check_sent, &Routes::check_received})
    for (const int64_t at : keys) {
      if (!fault.empty()) return fault;
      // PEs left of the first column have negative x.
      const int64_t x = ((at % 65536) + 65536 + 32768) % 65536 - 32768, y = (at - x) / 65536;
      fault = (this->*check)(x, y, pes_.at(at));
    }
  return fault;
}

int64_t Routes::most_colors() const {
  int64_t out = 0;
  for (const auto& [rect, count] : reserved_) out = std::max<int64_t>(out, count);
  for (const auto& [at, pe] : pes_) {
    const int64_t x = at % 65536, y = at / 65536;
    out = std::max(out, reserved_at(x, y) + static_cast<int64_t>(pe.routes.size()));
  }
  return out;
}

}  // namespace pfrt::wse
