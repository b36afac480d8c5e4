// SPDX-License-Identifier: Apache-2.0
#include "providers/wse/fabric/collectives.h"

#include <algorithm>
#include <cmath>

namespace pfrt::wse {
namespace {

// A line of PEs in a collective.
class Line {
 public:
  Line(std::span<double> times, const Machine& machine, int64_t wavelets)
      : times_(times), m_(machine), length_(static_cast<double>(wavelets) * machine.wavelet) {}

  double& free(int64_t pe) { return times_[static_cast<size_t>(pe)]; }
  void test_roles(double count) {
    for (double& t : times_) t += count * m_.role_test;
  }
  // The cycle in which the first wavelet of a message that |pe| sends enters its ramp.
  double send(int64_t pe) {
    const double first = free(pe) + m_.send_setup;
    free(pe) = first + length_;
    return first;
  }
  // Takes a message whose first wavelet entered the ramp |hops| away at |sent|: when it is taken.
  double receive(int64_t pe, double sent, int64_t hops) {
    const double arrival = sent + 2 * m_.ramp + static_cast<double>(hops) * m_.hop;
    const double first = std::max(arrival, free(pe) + m_.dsd_setup);
    free(pe) = first + length_;
    return first;
  }
  // Along PEs |first|, |first| + step, ... to |root|, which receives.
  void chain(int64_t first, int64_t root, int64_t step) {
    const int64_t hops = std::abs(step);
    double sent = send(first);
    for (int64_t pe = first + step; pe != root; pe += step) sent = receive(pe, sent, hops) + 1;
    receive(root, sent, hops);
  }
  void multicast(int64_t root, int64_t begin, int64_t end) {
    const double down = root > begin ? send(root) : 0;
    for (int64_t pe = begin; pe < root; ++pe) receive(pe, down, root - pe);
    const double up = root + 1 < end ? send(root) : 0;
    for (int64_t pe = root + 1; pe < end; ++pe) receive(pe, up, pe - root);
  }

 private:
  std::span<double> times_;
  const Machine& m_;
  double length_;  // cycles of a message on a link
};

template <typename Fn>
void on_lines(Grid& grid, const Machine& machine, Axis axis, int64_t wavelets, Fn fn) {
  grid.each_line(axis, [&](std::span<double> times) {
    Line line(times, machine, wavelets);
    fn(line, static_cast<int64_t>(times.size()));
  });
}

int64_t group_root(int64_t begin, int64_t end, int64_t group) {
  return std::min(begin + group / 2, end - 1);
}

// Runs both chains of [begin, end) into |root|: from above first.
void join(Line& line, int64_t begin, int64_t end, int64_t root) {
  if (root + 1 < end) line.chain(end - 1, root, -1);
  if (root > begin) line.chain(begin, root, 1);
}

}  // namespace

int64_t wavelets_of(int64_t elements, int64_t bytes) { return (elements * bytes + 3) / 4; }

int64_t tree_group(int64_t length) {
  return std::max<int64_t>(1, std::llround(std::sqrt(static_cast<double>(length))));
}

void pass_along(Grid& grid, const Machine& machine, Axis axis, int64_t wavelets) {
  on_lines(grid, machine, axis, wavelets, [](Line& line, int64_t count) {
    for (int64_t pe = 0; pe + 1 < count; ++pe) line.receive(pe + 1, line.send(pe), 1);
  });
}

void chain_reduce(Grid& grid, const Machine& machine, Axis axis, int64_t wavelets) {
  two_phase_reduce(grid, machine, axis, grid.length(axis), wavelets);
}

void two_phase_reduce(Grid& grid, const Machine& machine, Axis axis, int64_t group,
                      int64_t wavelets) {
  on_lines(grid, machine, axis, wavelets, [&](Line& line, int64_t count) {
    line.test_roles(1);
    for (int64_t begin = 0; begin < count; begin += group) {
      const int64_t end = std::min(count, begin + group);
      if (end - begin > 1) line.chain(end - 1, begin, -1);
    }
    if (group >= count) return;
    line.test_roles(1);
    line.chain((count - 1) / group * group, 0, -group);
  });
}

void multicast(Grid& grid, const Machine& machine, Axis axis, int64_t root, int64_t wavelets) {
  on_lines(grid, machine, axis, wavelets,
           [&](Line& line, int64_t count) { line.multicast(root, 0, count); });
}

void tree_all_reduce(Grid& grid, const Machine& machine, Axis axis, int64_t group,
                     int64_t wavelets) {
  on_lines(grid, machine, axis, wavelets, [&](Line& line, int64_t count) {
    line.test_roles(4);
    std::vector<int64_t> roots;
    for (int64_t begin = 0; begin < count; begin += group) {
      const int64_t end = std::min(count, begin + group);
      roots.push_back(group_root(begin, end, group));
      join(line, begin, end, roots.back());
    }
    line.test_roles(4);
    const auto last = static_cast<int64_t>(roots.size()) - 1;
    const int64_t middle = (last + 1) / 2;
    const auto at = [&](int64_t i) { return roots[static_cast<size_t>(i)]; };
    double sent = 0;
    // The root of all receives from above first, then from below. The last group's root may be
    // nearer than the others.
    for (int64_t i = last; i >= middle && last > middle; --i)
      sent = i == last ? line.send(at(i)) : line.receive(at(i), sent, at(i + 1) - at(i)) + 1;
    for (int64_t i = 0; i <= middle && middle > 0; ++i)
      sent = i == 0 ? line.send(at(i)) : line.receive(at(i), sent, at(i) - at(i - 1)) + 1;
    line.test_roles(2);
    line.multicast(at(middle), 0, count);
  });
}

void line_all_reduce(Grid& grid, const Machine& machine, Axis axis, int64_t wavelets) {
  on_lines(grid, machine, axis, wavelets, [&](Line& line, int64_t count) {
    const int64_t root = count / 2;
    line.test_roles(4);
    join(line, 0, count, root);
    line.multicast(root, 0, count);
  });
}

}  // namespace pfrt::wse
