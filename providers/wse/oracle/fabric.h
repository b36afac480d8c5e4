// SPDX-License-Identifier: Apache-2.0
//
// The routers and the links between them. A link carries one wavelet a `wavelet` in each direction
// for each color; those that find it taken wait in a queue without end. Not thread-safe.
#pragma once

#include <vector>

#include "providers/wse/machine/machine.h"
#include "providers/wse/oracle/event_queue.h"

namespace pfrt::wse::oracle {

class Fabric {
 public:
  static constexpr int kColors = 8;

  // |machine| and |events| outlive this.
  Fabric(const Machine& machine, int columns, int rows, bool turns_at_ramp, EventQueue& events);

  // |wavelet| enters the ramp of |pe| at |time|; its router copies it to each of |routes|.
  void enter(int pe, double time, Wavelet wavelet, const std::vector<Route>& routes);
  // A wavelet is at the router of event.pe: it goes on, or down the ramp, or both.
  void at_router(const Event& event);

 private:
  void over_link(const Event& event);
  void down_ramp(const Event& event);

  const Machine& machine_;
  EventQueue& events_;
  int columns_;
  bool turns_at_ramp_;
  std::vector<double> link_free_;  // by PE, direction and color
  std::vector<double> ramp_free_;  // into the core, by PE
};

}  // namespace pfrt::wse::oracle
