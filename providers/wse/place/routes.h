// SPDX-License-Identifier: Apache-2.0
//
// Routes of a program on the fabric and the rules that the routers and the host's own traffic set:
// a PE has so many colors and queues, a color comes from one direction, every way in has a way out
// on the other side, and programs stay in the usable rectangle. Faults are found before anything
// runs, and named with their PE. Not thread-safe while routes are added.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "providers/wse/machine/machine.h"

namespace pfrt::wse {

struct Rect {
  int64_t x = 0, y = 0, columns = 0, rows = 0;
  int64_t center_x() const { return x + columns / 2; }
  int64_t center_y() const { return y + rows / 2; }
};

struct Point {
  int64_t x, y;
};

// The five ports of a router, as bits.
enum Port : uint8_t { kNorth = 1, kSouth = 2, kEast = 4, kWest = 8, kRamp = 16 };

class Routes {
 public:
  explicit Routes(const Machine& machine) : machine_(machine) {}

  // |color| is taken in from |from| (ports, one bit) and sent on to |to| (any ports) at a PE.
  void add(int64_t x, int64_t y, int color, uint8_t from, uint8_t to);
  // |count| colors, from 0 on, that an algorithm has on every PE of |rect| for itself.
  void reserve(const Rect& rect, int count);
  // A stream from the middle of one rectangle to that of another, first along x and then along y,
  // in the first color that is free all along. False where there is none: *fault says where.
  bool connect(const Rect& from, const Rect& to, std::string* fault);
  // Connects |points|, each in a line with the one before it, in such a color.
  bool connect(const std::vector<Point>& points, std::string* fault);
  // Checks all PEs: the first fault that breaks a rule; empty when there is none.
  std::string check() const;
  // The most colors that a PE has.
  int64_t most_colors() const;

 private:
  struct Route {
    uint8_t from = 0, to = 0;
  };
  struct Pe {
    int reserved = 0;
    std::unordered_map<int, Route> routes;  // by color
  };
  static int64_t key(int64_t x, int64_t y) { return y * 65536 + x; }
  int reserved_at(int64_t x, int64_t y) const;
  // "PE (210,37) needs 27 colors, 18 available (24 minus 6 reserved by host I/O)"
  std::string crowded(int64_t x, int64_t y, int64_t colors) const;
  std::string check_pe(int64_t x, int64_t y, const Pe& pe) const;
  std::string check_sent(int64_t x, int64_t y, const Pe& pe) const;
  std::string check_received(int64_t x, int64_t y, const Pe& pe) const;
  std::string check_rectangles() const;
  const Route* route_at(int64_t x, int64_t y, int color) const;

  const Machine& machine_;
  std::vector<std::pair<Rect, int>> reserved_;
  std::unordered_map<int64_t, Pe> pes_;
};

}  // namespace pfrt::wse
