// SPDX-License-Identifier: Apache-2.0
#include "providers/wse/oracle/fabric.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace pfrt::wse::oracle {
namespace {

int opposite(int direction) { return (direction + 2) % 4; }

// Outputs that |wavelet| takes, as bits: its link while it has hops, the ramp where it ends, and
// both where it is copied on the way.
uint8_t outputs_of(const Wavelet& wavelet, int ramp, bool from_core) {
  const Route& route = wavelet.route;
  uint8_t out = 0;
  if (route.hops > 0) out |= static_cast<uint8_t>(1u << static_cast<unsigned>(route.direction));
  if (route.hops == 0 || (route.copies && !from_core)) out |= static_cast<uint8_t>(1u << ramp);
  return out;
}

}  // namespace

Fabric::Fabric(const Machine& machine, int columns, int rows, EventQueue& events,
               std::function<bool(int, int)> core_has_room,
               std::function<void(int, double)> ramp_freed)
    : machine_(machine),
      events_(events),
      columns_(columns),
      core_has_room_(std::move(core_has_room)),
      ramp_freed_(std::move(ramp_freed)),
      lanes_(static_cast<size_t>(columns * rows * kColors * kSides)),
      servers_(static_cast<size_t>(columns * rows * kOutputs)) {}

int Fabric::neighbour(int pe, int direction) const {
  const int steps[] = {-columns_, 1, columns_, -1};
  return pe + steps[direction];
}

bool Fabric::has_room(int pe, int color) const {
  const Lane& lane = lanes_[static_cast<size_t>(lane_of(pe, color, kRamp))];
  return static_cast<double>(lane.waiting.size()) < machine_.output_queue_words;
}

// Reading: a wavelet that is sent to several sides waits for each of them on its own.
void Fabric::enter(int pe, double time, const Wavelet& wavelet, const std::vector<Route>& routes) {
  for (const Route& route : routes) {
    Wavelet copy = wavelet;
    copy.route = route;
    copy.side = kRamp;
    events_.push(time + machine_.ramp, Event::Kind::kAtRouter, pe, copy);
  }
}

void Fabric::at_router(const Event& event) {
  const int index = lane_of(event.pe, event.wavelet.color, event.wavelet.side);
  Lane& lane = lanes_[static_cast<size_t>(index)];
  lane.waiting.push_back(event.wavelet);
  if (lane.waiting.size() == 1) ask(index, event.time);
}

// The first wavelet of a lane asks for its outputs.
void Fabric::ask(int index, double time) {
  Lane& lane = lanes_[static_cast<size_t>(index)];
  const int pe = index / (kColors * kSides);
  const uint8_t outputs = outputs_of(lane.waiting.front(), kRamp, index % kSides == kRamp);
  lane.asked = outputs;
  for (int output = 0; output < kOutputs; ++output) {
    if ((outputs >> output & 1) == 0) continue;
    const int server = server_of(pe, output);
    servers_[static_cast<size_t>(server)].lanes.push_back(index);
    serve(server, time);
  }
}

bool Fabric::has_room_beyond(int index, int output) const {
  const int pe = index / (kColors * kSides), color = index / kSides % kColors;
  if (output == kRamp) return core_has_room_(pe, color);
  const int beyond = lane_of(neighbour(pe, output), color, opposite(output));
  return static_cast<double>(lanes_[static_cast<size_t>(beyond)].waiting.size()) <
         machine_.router_words;
}

// Lets the first lane go that has room beyond; others of other colors are not held up by one that
// has none.
void Fabric::serve(int index, double time) {
  Server& server = servers_[static_cast<size_t>(index)];
  if (server.lanes.empty()) return;
  if (server.free > time) {
    if (!server.woken)
      events_.push(server.free, Event::Kind::kServer, index / kOutputs, {}, index % kOutputs);
    server.woken = true;
    return;
  }
  const int output = index % kOutputs;
  const auto ready = std::find_if(server.lanes.begin(), server.lanes.end(),
                                  [&](int lane) { return has_room_beyond(lane, output); });
  if (ready == server.lanes.end()) return;
  const int lane = *ready;
  server.lanes.erase(ready);
  server.free = time + machine_.wavelet;
  move_on(lane, output, time);
  serve(index, time);
}

void Fabric::at_server(const Event& event) {
  const int index = server_of(event.pe, event.output);
  servers_[static_cast<size_t>(index)].woken = false;
  serve(index, event.time);
}

void Fabric::move_on(int index, int output, double time) {
  Lane& lane = lanes_[static_cast<size_t>(index)];
  const int pe = index / (kColors * kSides);
  Wavelet wavelet = lane.waiting.front();
  if (output == kRamp) {
    events_.push(time + machine_.ramp, Event::Kind::kAtCore, pe, wavelet);
  } else {
    --wavelet.route.hops;
    wavelet.side = static_cast<uint8_t>(opposite(output));
    events_.push(time + machine_.hop, Event::Kind::kAtRouter, neighbour(pe, output), wavelet);
  }
  lane.asked = static_cast<uint8_t>(lane.asked & ~(1u << output));
  if (lane.asked != 0) return;
  lane.waiting.pop_front();
  if (!lane.waiting.empty()) ask(index, time);
  freed(index, time);
}

// There is room in a lane again: whoever fills it may go on.
void Fabric::freed(int index, double time) {
  const int pe = index / (kColors * kSides), side = index % kSides;
  if (side == kRamp) return ramp_freed_(pe, time);
  serve(server_of(neighbour(pe, side), opposite(side)), time);
}

void Fabric::core_took(int pe, double time) { serve(server_of(pe, kRamp), time); }

}  // namespace pfrt::wse::oracle
