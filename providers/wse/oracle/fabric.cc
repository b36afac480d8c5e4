// SPDX-License-Identifier: Apache-2.0
#include "providers/wse/oracle/fabric.h"

#include <algorithm>

namespace pfrt::wse::oracle {
namespace {

constexpr int kDirections = 4;

}  // namespace

Fabric::Fabric(const Machine& machine, int columns, int rows, bool turns_at_ramp,
               EventQueue& events)
    : machine_(machine),
      events_(events),
      columns_(columns),
      turns_at_ramp_(turns_at_ramp),
      link_free_(static_cast<size_t>(columns * rows * kDirections * kColors)),
      ramp_free_(static_cast<size_t>(columns * rows)) {}

void Fabric::enter(int pe, double time, Wavelet wavelet, const std::vector<Route>& routes) {
  for (const Route& route : routes) {
    wavelet.route = route;
    events_.push(time + machine_.ramp, Event::Kind::kAtRouter, pe, wavelet);
  }
}

void Fabric::at_router(const Event& event) {
  const Route& route = event.wavelet.route;
  if (route.hops > 0) over_link(event);
  if (route.hops == 0) down_ramp(event);
}

void Fabric::over_link(const Event& event) {
  const int direction = static_cast<int>(event.wavelet.route.direction);
  const int link = (event.pe * kDirections + direction) * kColors + event.wavelet.color;
  double& link_free = link_free_[static_cast<size_t>(link)];
  const double leaves = std::max(event.time, link_free);
  link_free = leaves + machine_.wavelet;

  const int steps[kDirections] = {-columns_, 1, columns_, -1};
  const int next = event.pe + steps[direction];
  Wavelet wavelet = event.wavelet;
  --wavelet.route.hops;
  events_.push(leaves + machine_.hop, Event::Kind::kAtRouter, next, wavelet);
  // The copy for the core there is made at its router; an event of its own keeps that in order.
  if (!wavelet.route.copies || wavelet.route.hops == 0) return;
  wavelet.route.hops = 0;
  events_.push(leaves + machine_.hop, Event::Kind::kAtRouter, next, wavelet);
}

void Fabric::down_ramp(const Event& event) {
  double arrives = event.time + machine_.ramp;
  if (turns_at_ramp_) {
    double& ramp_free = ramp_free_[static_cast<size_t>(event.pe)];
    arrives = std::max(arrives, ramp_free);
    ramp_free = arrives + machine_.wavelet;
  }
  events_.push(arrives, Event::Kind::kAtCore, event.pe, event.wavelet);
}

}  // namespace pfrt::wse::oracle
