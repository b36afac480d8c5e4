// SPDX-License-Identifier: Apache-2.0
#include "providers/wse/fabric/exchange.h"

#include <algorithm>
#include <cmath>

namespace pfrt::wse {
namespace {

// Cycles from the sending of a message's last wavelet until it is there, over |hops|.
double latency(const Machine& m, int64_t hops) {
  return m.dispatch + 2 * m.ramp + static_cast<double>(hops) * m.hop + m.completion;
}

// Cycles that messages of so many wavelets take of the ramp each way, and of the datapath.
double exchanged(const Machine& m, int64_t wavelets) {
  return static_cast<double>(wavelets) * m.wavelet;
}

// Cycles from the start of messages of so many wavelets until the last is sent.
double sent_after(const Machine& m, int64_t wavelets) {
  return std::max(m.exchange_floor, static_cast<double>(wavelets - 1) * m.wavelet);
}

// For each place of a line, the place that it receives from and the distance of that.
struct Neighbour {
  int64_t from, hops;
};

std::vector<Neighbour> ring_of(int64_t count, bool interleaved) {
  const std::vector<int32_t> order = ring_order(count, interleaved);
  std::vector<Neighbour> out(static_cast<size_t>(count));
  for (size_t i = 0; i < order.size(); ++i) {
    const int64_t to = order[i], from = order[(i + 1) % order.size()];
    out[static_cast<size_t>(to)] = {from, std::abs(to - from)};
  }
  return out;
}

// Times of one kind of a step: what a PE needs alone, and from the start of a neighbour's step to
// the end of its own, over no hop.
struct StepTimes {
  double own, from_x, from_y;
};

// Updates of a PE's time up to which steps are worked through one by one.
constexpr int64_t kStepwise = 500'000;

bool stepwise(const Grid& grid, int64_t count) {
  return grid.columns() * grid.rows() * count <= kStepwise;
}

class Steps {
 public:
  Steps(const Machine& m, int64_t columns, int64_t rows, bool interleaved, StepTimes times)
      : m_(m), times_(times), x_(ring_of(columns, interleaved)), y_(ring_of(rows, interleaved)) {}

  void run(Grid& grid, int64_t count) {
    const double steps = static_cast<double>(count);
    const bool busy = longest() <= times_.own;
    if (busy && grid.uniform()) return grid.work(steps * times_.own);
    if (stepwise(grid, count)) {
      grid.all([&](std::span<double> t) {
        for (int64_t i = 0; i < count; ++i) step(t);
      });
    } else if (busy) {
      many(grid, count);
    } else {
      // The fabric sets the pace, but for links that are used once a round of the ring.
      grid.work(steps * std::max(times_.own, pace()) + longest());
    }
  }

 private:
  // The longest way from a neighbour, against which a PE's own work is held.
  double longest() const {
    double out = 0;
    for (const Neighbour& n : x_) out = std::max(out, times_.from_x + latency(m_, n.hops));
    for (const Neighbour& n : y_) out = std::max(out, times_.from_y + latency(m_, n.hops));
    return out;
  }
  // Cycles a step that the ordinary links of the rings allow.
  double pace() const {
    const auto middle = [](const std::vector<Neighbour>& ring) {
      std::vector<int64_t> hops;
      hops.reserve(ring.size());
      for (const Neighbour& n : ring) hops.push_back(n.hops);
      std::nth_element(hops.begin(), hops.begin() + static_cast<ptrdiff_t>(hops.size() / 2),
                       hops.end());
      return hops[hops.size() / 2];
    };
    return std::max(times_.from_x + latency(m_, middle(x_)),
                    times_.from_y + latency(m_, middle(y_)));
  }
  // Moves the times on by |count| steps if every PE's own work is longer than any way from a
  // neighbour. A late PE then holds up those that receive from it, directly or not, the less the
  // longer the way is; and no way is longer than there are steps.
  void many(Grid& grid, int64_t count) const {
    grid.each_line(Axis::kX, [&](std::span<double> t) { settle(t, x_, times_.from_x); });
    grid.each_line(Axis::kY, [&](std::span<double> t) { settle(t, y_, times_.from_y); });
    grid.work(static_cast<double>(count) * times_.own);
  }
  void step(std::span<double> t) {
    old_.assign(t.begin(), t.end());
    const size_t width = x_.size();
    for (size_t y = 0; y < y_.size(); ++y)
      for (size_t x = 0; x < width; ++x) {
        const double left = old_[y * width + static_cast<size_t>(x_[x].from)] + times_.from_x +
                            latency(m_, x_[x].hops);
        const double above = old_[static_cast<size_t>(y_[y].from) * width + x] + times_.from_y +
                             latency(m_, y_[y].hops);
        t[y * width + x] = std::max({old_[y * width + x] + times_.own, left, above});
      }
  }

  void settle(std::span<double> t, const std::vector<Neighbour>& ring, double from) const {
    int64_t to = ring[0].from;
    // Against the direction of receiving a delay would have to be looked up: the ring is gone round
    // by its order, from each place to the one that receives from it.
    std::vector<int64_t> after(ring.size());
    for (size_t i = 0; i < ring.size(); ++i)
      after[static_cast<size_t>(ring[i].from)] = static_cast<int64_t>(i);
    for (size_t i = 0; i < 2 * ring.size(); ++i) {
      const auto next = static_cast<size_t>(after[static_cast<size_t>(to)]);
      const double saved = times_.own - from - latency(m_, ring[next].hops);
      t[next] = std::max(t[next], t[static_cast<size_t>(to)] - saved);
      to = static_cast<int64_t>(next);
    }
  }

  const Machine& m_;
  StepTimes times_;
  std::vector<Neighbour> x_, y_;
  std::vector<double> old_;
};

}  // namespace

std::vector<int32_t> ring_order(int64_t count, bool interleaved) {
  std::vector<int32_t> out;
  if (!interleaved) {
    for (int64_t i = 0; i < count; ++i) out.push_back(static_cast<int32_t>(i));
    return out;
  }
  for (int64_t i = 0; i < count; i += 2) out.push_back(static_cast<int32_t>(i));
  for (int64_t i = count % 2 ? count - 2 : count - 1; i > 0; i -= 2)
    out.push_back(static_cast<int32_t>(i));
  return out;
}

void align(Grid& grid, const Machine& m, int64_t rounds, int64_t wavelets, bool interleaved) {
  const double issue = 2 * m.async;
  constexpr double kNever = -1e18;  // nothing comes along y
  const double own = issue + exchanged(m, wavelets) + m.task;
  Steps steps(m, grid.columns(), grid.rows(), interleaved,
              {own, issue + sent_after(m, wavelets) + m.task, kNever});
  steps.run(grid, rounds);
}

void shift_steps(Grid& grid, const Machine& m, int64_t count, const ShiftStep& step) {
  const double issue = 4 * m.async, join = 4 * m.task;
  // On a line of one PE nothing is moved.
  const int64_t a_wavelets = grid.columns() > 1 ? step.a_wavelets : 0;
  const int64_t both = a_wavelets + (grid.rows() > 1 ? step.b_wavelets : 0);
  const StepTimes times{issue + step.compute + exchanged(m, both) + join,
                        issue + sent_after(m, a_wavelets) + join,
                        issue + sent_after(m, both) + join};
  if (grid.columns() * grid.rows() == 1) return grid.work(static_cast<double>(count) * times.own);
  Steps steps(m, grid.columns(), grid.rows(), step.interleaved, times);
  steps.run(grid, count);
}

namespace {

double multicast_arrival(const Machine& m, double sent, int64_t place, int64_t root) {
  return sent + 2 * m.ramp + static_cast<double>(std::abs(place - root)) * m.hop;
}

}  // namespace

void multicast_both(Grid& grid, const Machine& m, int64_t from, int64_t a_wavelets,
                    int64_t b_wavelets) {
  if (grid.columns() * grid.rows() == 1) return;
  const double a = exchanged(m, a_wavelets), b = exchanged(m, b_wavelets);
  const int64_t width = grid.columns(), height = grid.rows();
  // A is sent before B, and taken before it.
  grid.all([&](std::span<double> t) {
    const auto at = [&](int64_t x, int64_t y) { return static_cast<size_t>(y * width + x); };
    std::vector<double> of_row(static_cast<size_t>(height)), of_column(static_cast<size_t>(width));
    for (int64_t y = 0; y < height; ++y)
      of_row[static_cast<size_t>(y)] = t[at(from, y)] + m.send_setup;
    for (int64_t y = 0; y < height; ++y)
      for (int64_t x = 0; x < width; ++x) {
        double& free = t[at(x, y)];
        const double sent = of_row[static_cast<size_t>(y)];
        free = a + (x == from ? sent
                              : std::max(multicast_arrival(m, sent, x, from), free + m.dsd_setup));
      }
    for (int64_t x = 0; x < width; ++x)
      of_column[static_cast<size_t>(x)] = t[at(x, from)] + m.send_setup;
    for (int64_t y = 0; y < height; ++y)
      for (int64_t x = 0; x < width; ++x) {
        double& free = t[at(x, y)];
        const double sent = of_column[static_cast<size_t>(x)];
        free = b + (y == from ? sent
                              : std::max(multicast_arrival(m, sent, y, from), free + m.dsd_setup));
      }
  });
}

void exchange_halo(Grid& grid, const Machine& m, int64_t wavelets) {
  // Counts the neighbours of a PE that has most of them.
  const int64_t neighbours =
      std::min<int64_t>(2, grid.columns() - 1) + std::min<int64_t>(2, grid.rows() - 1);
  if (neighbours == 0) return;
  const double own = exchanged(m, neighbours * wavelets);
  const double parts = 2 * static_cast<double>(neighbours);
  grid.work(parts * m.async + std::max(own, sent_after(m, neighbours * wavelets) + latency(m, 1)) +
            parts * m.task);
}

void shift_up(Grid& grid, const Machine& m, int64_t wavelets) {
  // Counts for a row that both gives and takes; with two rows each does one of these.
  const double parts = static_cast<double>(std::min<int64_t>(2, grid.rows() - 1));
  if (parts == 0) return;
  const double own = exchanged(m, wavelets);
  grid.work(parts * m.async + std::max(own, sent_after(m, wavelets) + latency(m, 1)) +
            parts * m.task);
}

}  // namespace pfrt::wse
