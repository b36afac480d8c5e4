// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/page/layout.h"

#include <algorithm>

#include "cxxapi/cli/page/layer_assignment.h"
#include "cxxapi/cli/page/rows.h"

namespace cli {
namespace {

constexpr double kMargin = 20;
constexpr double kStub = 14;  // length that remains of a cut link
constexpr double kLeastGap = 34, kMostGap = 110;

// Places the ranks. A gap is higher where its lines go far to the side, so that they stay apart.
void place_ranks(const Rows& rows, const std::vector<double>& x, Layout* out) {
  double y = kMargin;
  for (size_t r = 0; r < rows.ranks.size(); ++r) {
    double height = 0, reach = 0;
    for (const size_t item : rows.ranks[r]) {
      height = std::max(height, rows.items[item].size.height);
      for (const size_t next : rows.items[item].down) {
        reach = std::max(reach, std::abs(x[item] - x[next]));
      }
    }
    out->ranks.push_back({y, y + height});
    y += height + std::clamp(reach / 6, kLeastGap, kMostGap);
  }
  out->height = out->ranks.empty() ? 2 * kMargin : out->ranks.back().bottom + kMargin;
}

// Line ends that meet a box on one edge, spread over it in the order of their other ends.
struct Ports {
  struct End {
    double other;
    size_t key;
  };
  std::vector<std::vector<End>> ends;  // of each box

  explicit Ports(size_t boxes) : ends(boxes) {}
  // Calls |found(key, x)| with the place of each end.
  template <class Found>
  void spread(const std::vector<Size>& sizes, const Layout& layout, Found found) {
    for (size_t box = 0; box < ends.size(); ++box) {
      std::stable_sort(ends[box].begin(), ends[box].end(),
                       [](const End& a, const End& b) { return a.other < b.other; });
      const double count = static_cast<double>(ends[box].size());
      const double step = std::min(14.0, 0.8 * sizes[box].width / std::max(count, 1.0));
      double at = layout.boxes[box].top.x - step * (count - 1) / 2;
      for (const End& end : ends[box]) {
        found(end.key, at);
        at += step;
      }
    }
  }
};

class Router {
 public:
  Router(const std::vector<Size>& sizes, const std::vector<Link>& links, const Ranking& ranking,
         const Rows& rows, const std::vector<double>& x, Layout* out)
      : sizes_(sizes), links_(links), ranking_(ranking), rows_(rows), x_(x), out_(*out) {}

  void run() {
    find_ports();
    for (size_t value = 0; value < rows_.ways.size(); ++value) {
      if (rows_.ways[value].count != 0) draw_way(value);
    }
    for (size_t i = 0; i < links_.size(); ++i) ranking_.cut[i] ? draw_stubs(i) : draw_end(i);
  }

 private:
  // Returns the item that link |i| comes from at its last gap.
  size_t above(size_t i) const {
    const Way& way = rows_.ways[links_[i].value];
    const size_t span = ranking_.rank[links_[i].to] - ranking_.rank[links_[i].from];
    return span == 1 ? links_[i].from : way.first + span - 2;
  }

  void find_ports() {
    Ports in(sizes_.size()), out(sizes_.size());
    arrival_.resize(links_.size());
    departure_.resize(rows_.ways.size());
    std::vector<double> sum(rows_.ways.size()), count(rows_.ways.size());
    std::vector<size_t> from(rows_.ways.size(), sizes_.size());
    for (size_t i = 0; i < links_.size(); ++i) {
      const Link& link = links_[i];
      const bool cut = ranking_.cut[i];
      in.ends[link.to].push_back({x_[cut ? link.from : above(i)], i});
      from[link.value] = link.from;
      if (cut || above(i) != link.from) continue;
      sum[link.value] += x_[link.to];
      count[link.value] += 1;
    }
    for (size_t value = 0; value < from.size(); ++value) {
      if (from[value] == sizes_.size()) continue;
      const Way& way = rows_.ways[value];
      if (way.count != 0) sum[value] += x_[way.first], count[value] += 1;
      out.ends[from[value]].push_back(
          {count[value] > 0 ? sum[value] / count[value] : x_[from[value]], value});
    }
    in.spread(sizes_, out_, [this](size_t link, double at) { arrival_[link] = at; });
    out.spread(sizes_, out_, [this](size_t value, double at) { departure_[value] = at; });
  }

  // Returns the points from the box to the lower edge of its rank.
  std::vector<Point> leave(size_t value, size_t box) const {
    const Place& place = out_.boxes[box];
    return {{departure_[value], place.top.y + sizes_[box].height},
            {departure_[value], out_.ranks[place.rank].bottom}};
  }

  void draw_way(size_t value) {
    const Way& way = rows_.ways[value];
    Line line{value, leave(value, way.from), false, false};
    for (size_t item = way.first; item < way.first + way.count; ++item) {
      const Rank& rank = out_.ranks[rows_.items[item].rank];
      line.points.push_back({x_[item], rank.top});
      line.points.push_back({x_[item], rank.bottom});
    }
    out_.lines.push_back(std::move(line));
  }

  void draw_end(size_t i) {
    const Link& link = links_[i];
    Line line{link.value, {}, true, false};
    const size_t item = above(i);
    if (item == link.from) {
      line.points = leave(link.value, item);
    } else {
      line.points = {{x_[item], out_.ranks[rows_.items[item].rank].bottom}};
    }
    line.points.push_back({arrival_[i], out_.boxes[link.to].top.y});
    out_.lines.push_back(std::move(line));
  }

  void draw_stubs(size_t i) {
    const Link& link = links_[i];
    Line start{link.value, leave(link.value, link.from), false, true};
    start.points.push_back({start.points.back().x, start.points.back().y + kStub});
    const Point end{arrival_[i], out_.boxes[link.to].top.y};
    out_.lines.push_back(std::move(start));
    out_.lines.push_back({link.value, {{end.x, end.y - kStub}, end}, true, true});
  }

  const std::vector<Size>& sizes_;
  const std::vector<Link>& links_;
  const Ranking& ranking_;
  const Rows& rows_;
  const std::vector<double>& x_;
  Layout& out_;
  std::vector<double> arrival_;    // x of a link's lower end
  std::vector<double> departure_;  // x of a value's upper end
};

}  // namespace

Layout lay_out(const std::vector<Size>& boxes, const std::vector<Link>& links, size_t values) {
  Layout out;
  const Ranking ranking = rank_boxes(boxes.size(), links, values);
  Rows rows = make_rows(boxes, links, values, ranking);
  order_rows(&rows);
  std::vector<double> x = place_rows(rows);
  double left = 0, right = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double half = rows.items[i].size.width / 2;
    left = i == 0 ? x[i] - half : std::min(left, x[i] - half);
    right = i == 0 ? x[i] + half : std::max(right, x[i] + half);
  }
  for (double& at : x) at += kMargin - left;
  out.width = right - left + 2 * kMargin;
  place_ranks(rows, x, &out);
  for (size_t i = 0; i < boxes.size(); ++i) {
    out.boxes.push_back({{x[i], out.ranks[ranking.rank[i]].top}, ranking.rank[i]});
  }
  Router(boxes, links, ranking, rows, x, &out).run();
  return out;
}

}  // namespace cli
