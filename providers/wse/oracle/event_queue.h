// SPDX-License-Identifier: Apache-2.0
//
// Wavelets, and the events that move them, in order of time and, at the same time, in the order in
// which they were made. Not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <queue>
#include <vector>

namespace pfrt::wse::oracle {

enum class Direction : uint8_t { kNorth, kEast, kSouth, kWest };  // north: to smaller rows

// All routes of the algorithms here are straight, so nobody pays for a turn.
struct Route {
  Direction direction = Direction::kEast;
  uint8_t hops = 0;
  bool copies = false;  // a multicast: each router on the way gives a copy to its core
};

struct Wavelet {
  std::array<float, 2> element = {};
  uint8_t count = 0;  // of elements
  uint8_t color = 0;
  Route route = {};  // the rest of its route
  uint8_t side = 0;  // of the router that it comes to: a direction, or the ramp
};

struct Event {
  enum class Kind : uint8_t {
    kAtRouter,  // a wavelet came over a link, or up the ramp
    kAtCore,    // a wavelet came down the ramp
    kServer,    // a link or a ramp is free again
    kTick,      // a core moves its next wavelet
    kDone       // a core's operation has ended
  };
  double time = 0;
  uint64_t made = 0;
  Kind kind = Kind::kTick;
  int pe = 0;
  Wavelet wavelet = {};
  int output = 0;  // of the router, of kServer
};

class EventQueue {
 public:
  void push(double time, Event::Kind kind, int pe, const Wavelet& wavelet = {}, int output = 0) {
    events_.push({time, made_++, kind, pe, wavelet, output});
  }
  bool empty() const { return events_.empty(); }
  Event pop() {
    const Event event = events_.top();
    events_.pop();
    return event;
  }

 private:
  struct Later {
    bool operator()(const Event& x, const Event& y) const {
      return x.time != y.time ? x.time > y.time : x.made > y.made;
    }
  };
  std::priority_queue<Event, std::vector<Event>, Later> events_;
  uint64_t made_ = 0;
};

}  // namespace pfrt::wse::oracle
