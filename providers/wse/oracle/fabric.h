// SPDX-License-Identifier: Apache-2.0
//
// The routers, the links between them and the ramps to the cores. A link carries one wavelet a
// `wavelet` in each direction, whatever their colors, and so does a ramp. Routers, cores and ramps
// have room for a few wavelets of a color: what finds none waits where it is, and holds up what
// comes behind it. Not thread-safe.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <vector>

#include "providers/wse/machine/machine.h"
#include "providers/wse/oracle/event_queue.h"

namespace pfrt::wse::oracle {

class Fabric {
 public:
  static constexpr int kColors = 8;

  // |machine| and |events| outlive this. |core_has_room| says whether the queue of a color at a
  // core takes another wavelet, |ramp_freed| that a core may send again.
  Fabric(const Machine& machine, int columns, int rows, EventQueue& events,
         std::function<bool(int pe, int color)> core_has_room,
         std::function<void(int pe, double time)> ramp_freed);

  // Whether the ramp of |pe| takes another wavelet of |color| that its core sends.
  bool has_room(int pe, int color) const;
  // |wavelet| enters the ramp of |pe| at |time|; its router copies it to each of |routes|.
  void enter(int pe, double time, const Wavelet& wavelet, const std::vector<Route>& routes);
  void at_router(const Event& event);
  void at_server(const Event& event);   // a link or a ramp may go on
  void core_took(int pe, double time);  // there is room at a core again

 private:
  // Wavelets of a color that wait at a router, from one side; the first may go.
  struct Lane {
    std::deque<Wavelet> waiting;
    uint8_t asked = 0;  // outputs that the first one has asked for and not got
  };
  // A link to a neighbour, or the ramp into the core.
  struct Server {
    double free = 0;
    bool woken = false;          // an event will come when it is free
    std::deque<int> lanes = {};  // lanes whose first wavelet wants it
  };
  static constexpr int kSides = 5;    // four neighbours and the core
  static constexpr int kOutputs = 5;  // four neighbours and the core
  static constexpr int kRamp = 4;

  int lane_of(int pe, int color, int side) const { return (pe * kColors + color) * kSides + side; }
  int server_of(int pe, int output) const { return pe * kOutputs + output; }
  int neighbour(int pe, int direction) const;
  bool has_room_beyond(int lane, int output) const;
  void ask(int lane, double time);
  void serve(int server, double time);
  void move_on(int lane, int output, double time);
  void freed(int lane, double time);

  const Machine& machine_;
  EventQueue& events_;
  int columns_;
  std::function<bool(int, int)> core_has_room_;
  std::function<void(int, double)> ramp_freed_;
  std::vector<Lane> lanes_;
  std::vector<Server> servers_;
};

}  // namespace pfrt::wse::oracle
