// SPDX-License-Identifier: Apache-2.0
#include "providers/wse/schedule/schedule.h"

namespace pfrt::wse {

Spent Schedule::spent() const {
  Spent out;
  for (const Phase& phase : phases_) {
    out.cycles += phase.cycles;
    if (phase.kind == PhaseKind::kHost) {
      out.host += phase.cycles;
    } else {
      out.compute += phase.busy;
      out.fabric += phase.cycles - phase.busy;
    }
  }
  return out;
}

void Schedule::phase(PhaseKind kind, std::string_view name, double busy,
                     const std::function<void(Grid&)>& fn) {
  const double before = grid_.finish();
  fn(grid_);
  const double cycles = grid_.finish() - before;
  phases_.push_back({kind, name, cycles, std::min(busy, cycles)});
}

void Schedule::work(std::string_view name, double cycles) {
  phase(PhaseKind::kCompute, name, cycles, [&](Grid& grid) { grid.work(cycles); });
}

void Schedule::vectors(std::string_view name, double count, int64_t n) {
  work(name, count * (machine_.dsd_setup + op(n)));
}

void Schedule::copies(std::string_view name, double count, int64_t n) {
  work(name, count * (machine_.dsd_setup + copy(n)));
}

double Schedule::map_cycles(int64_t calls, int64_t n, bool dependent) const {
  return machine_.map_setup + static_cast<double>(calls) * (machine_.map_call + fmac(n) +
                                                            (dependent ? machine_.dependent : 0));
}

void Schedule::loop(std::string_view name, int64_t calls, int64_t n) {
  work(name, static_cast<double>(calls) * (machine_.loop_call + op(n)));
}

void Schedule::register_join(std::string_view name, int64_t n) {
  work(name, machine_.dsd_setup + static_cast<double>(n) * machine_.register_element);
}

void Schedule::scalar_loop(std::string_view name, int64_t count, double cycles) {
  work(name, machine_.map_setup + static_cast<double>(count) * (machine_.map_call + cycles));
}

void Schedule::all_reduce(std::string_view name, Axis axis, int64_t elements, int64_t group) {
  const int64_t length = grid_.length(axis), wavelets = this->wavelets(elements);
  if (length < 2) return;
  phase(PhaseKind::kCollective, name, 0, [&](Grid& grid) {
    tree_all_reduce(grid, machine_, axis, group > 0 ? group : tree_group(length), wavelets);
  });
}

}  // namespace pfrt::wse
