// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/page/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace pfrt_test {
namespace {

using cli::Layout;
using cli::Line;
using cli::Link;
using cli::Point;
using cli::Size;

constexpr double kRounding = 1e-6;

struct Drawn {
  std::vector<Size> boxes;
  std::vector<Link> links;
  size_t values = 0;

  size_t add(double width = 60, double height = 30) {
    boxes.push_back({width, height});
    return boxes.size() - 1;
  }
  // Adds a link that carries a new value.
  void join(size_t from, size_t to) { links.push_back({from, to, values++}); }
};

double left(const Drawn& d, const Layout& l, size_t box) {
  return l.boxes[box].top.x - d.boxes[box].width / 2;
}
double right(const Drawn& d, const Layout& l, size_t box) {
  return l.boxes[box].top.x + d.boxes[box].width / 2;
}

void expect_apart(const Drawn& d, const Layout& l) {
  std::map<size_t, std::vector<size_t>> ranks;
  for (size_t i = 0; i < d.boxes.size(); ++i) {
    ranks[l.boxes[i].rank].push_back(i);
    EXPECT_GE(left(d, l, i), 0);
    EXPECT_LE(right(d, l, i), l.width + kRounding);
    EXPECT_GE(l.boxes[i].top.y, l.ranks[l.boxes[i].rank].top);
    EXPECT_LE(l.boxes[i].top.y + d.boxes[i].height, l.ranks[l.boxes[i].rank].bottom + kRounding);
  }
  for (size_t r = 0; r + 1 < l.ranks.size(); ++r) EXPECT_LT(l.ranks[r].bottom, l.ranks[r + 1].top);
  for (auto& [rank, boxes] : ranks) {
    std::sort(boxes.begin(), boxes.end(),
              [&](size_t a, size_t b) { return l.boxes[a].top.x < l.boxes[b].top.x; });
    for (size_t i = 0; i + 1 < boxes.size(); ++i) {
      EXPECT_LT(right(d, l, boxes[i]), left(d, l, boxes[i + 1])) << "rank " << rank;
    }
  }
}

bool in_a_gap(const Layout& l, double from, double to) {
  for (size_t r = 0; r + 1 < l.ranks.size(); ++r) {
    if (from >= l.ranks[r].bottom - kRounding && to <= l.ranks[r + 1].top + kRounding) return true;
  }
  return false;
}

// Expects that curves stay between ranks, and straight pieces outside boxes.
void expect_clear(const Drawn& d, const Layout& l, const Line& line) {
  ASSERT_GE(line.points.size(), 2U);
  for (size_t i = 1; i < line.points.size(); ++i) {
    const Point &from = line.points[i - 1], &to = line.points[i];
    ASSERT_LE(from.y, to.y + kRounding);
    if (from.x != to.x) {
      ASSERT_TRUE(in_a_gap(l, from.y, to.y)) << from.y << " to " << to.y;
      continue;
    }
    for (size_t box = 0; box < d.boxes.size(); ++box) {
      const double top = l.boxes[box].top.y, bottom = top + d.boxes[box].height;
      if (to.y <= top + kRounding || from.y >= bottom - kRounding) continue;
      ASSERT_TRUE(from.x < left(d, l, box) || from.x > right(d, l, box)) << "box " << box;
    }
  }
  EXPECT_LT(line.points.front().y, line.points.back().y);
}

Layout expect_good(const Drawn& d) {
  const Layout l = lay_out(d.boxes, d.links, d.values);
  expect_apart(d, l);
  size_t arrivals = 0;
  for (const Line& line : l.lines) {
    expect_clear(d, l, line);
    if (testing::Test::HasFatalFailure()) return l;
    arrivals += line.arrives;
  }
  EXPECT_EQ(arrivals, d.links.size());
  // Each link ends on its box.
  for (const Link& link : d.links) {
    const auto ends_there = [&](const Line& line) {
      const Point& end = line.points.back();
      return line.arrives && line.value == link.value && end.x > left(d, l, link.to) &&
             end.x < right(d, l, link.to) && end.y == l.boxes[link.to].top.y;
    };
    EXPECT_TRUE(std::any_of(l.lines.begin(), l.lines.end(), ends_there)) << link.to;
  }
  return l;
}

size_t cut_lines(const Layout& l) {
  return static_cast<size_t>(
      std::count_if(l.lines.begin(), l.lines.end(), [](const Line& line) { return line.cut; }));
}

TEST(Layout, of_nothing_is_empty) { EXPECT_EQ(expect_good({}).boxes.size(), 0U); }

TEST(Layout, a_chain_is_a_straight_line) {
  Drawn d;
  d.add(120);
  for (size_t i = 1; i < 1200; ++i)
    d.join(i - 1, d.add(i % 2 == 0 ? 50 : 90, i % 3 == 0 ? 20 : 45));
  const Layout l = expect_good(d);
  EXPECT_EQ(l.ranks.size(), 1200U);
  for (const auto& box : l.boxes) EXPECT_NEAR(box.top.x, l.boxes[0].top.x, 1e-3);
}

TEST(Layout, a_skip_passes_beside_the_boxes) {
  Drawn d;
  for (int i = 0; i < 5; ++i) d.add(100);
  for (size_t i = 1; i < 5; ++i) d.join(i - 1, i);
  d.links.push_back({0, 4, 0});  // the value that box 1 takes too
  const Layout l = expect_good(d);
  EXPECT_EQ(cut_lines(l), 0U);
  const auto way =
      std::find_if(l.lines.begin(), l.lines.end(), [](const Line& line) { return !line.arrives; });
  ASSERT_NE(way, l.lines.end());
  EXPECT_EQ(way->points.size(), 8U);  // leaves, and passes three ranks
}

TEST(Layout, sources_are_where_they_are_needed) {
  Drawn d;
  d.add();
  for (size_t i = 1; i < 10; ++i) d.join(i - 1, d.add());
  const size_t mask = d.add(), cast = d.add();
  d.join(mask, cast);
  d.join(cast, 9);
  const Layout l = expect_good(d);
  EXPECT_EQ(l.boxes[cast].rank, 8U);
  EXPECT_EQ(l.boxes[mask].rank, 7U);
}

TEST(Layout, lines_of_two_neighbours_do_not_cross) {
  Drawn d;
  const size_t a = d.add(), b = d.add(), c = d.add(), e = d.add();
  d.join(a, e);
  d.join(b, c);
  const Layout l = expect_good(d);
  EXPECT_EQ(l.boxes[a].top.x < l.boxes[b].top.x, l.boxes[e].top.x < l.boxes[c].top.x);
}

TEST(Layout, circles_are_cut) {
  Drawn d;
  for (int i = 0; i < 4; ++i) d.add();
  d.join(0, 1);
  d.join(1, 2);
  d.join(2, 1);
  d.join(3, 3);
  EXPECT_EQ(cut_lines(expect_good(d)), 4U);  // two ends of two links
}

TEST(Layout, the_farthest_links_of_very_many_are_cut) {
  Drawn d;
  d.add();
  constexpr size_t kBoxes = 600;
  for (size_t i = 1; i < kBoxes; ++i) d.join(i - 1, d.add());
  for (size_t i = 0; i + 2 < kBoxes / 2; ++i) d.join(i, kBoxes - 1 - i);
  const Layout l = expect_good(d);
  size_t points = 0;
  for (const Line& line : l.lines) points += line.points.size();
  EXPECT_GT(cut_lines(l), 0U);
  EXPECT_LT(cut_lines(l), 2 * d.links.size());
  EXPECT_LT(points, 2 * (2000 + 10 * kBoxes) + 8 * d.links.size());
}

TEST(Layout, random_graphs_keep_the_rules) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto below = [&random](size_t n) { return random() % n; };
    Drawn d;
    const size_t count = 2 + below(80), reach = 1 + below(30);
    for (size_t i = 0; i < count; ++i) {
      d.add(40 + static_cast<double>(below(150)), 20 + static_cast<double>(below(30)));
      ++d.values;  // one a box
      for (size_t inputs = i == 0 ? 0 : below(4); inputs-- > 0;) {
        const size_t from = i - 1 - below(std::min(i, reach));
        d.links.push_back({from, i, from});
      }
    }
    expect_good(d);
    if (HasFatalFailure() || HasNonfatalFailure()) return;
  }
}

}  // namespace
}  // namespace pfrt_test
