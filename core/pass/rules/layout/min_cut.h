// SPDX-License-Identifier: Apache-2.0
//
// Finds the cheapest cut of a network in two parts (Dinic's algorithm: blocking flows by levels).
// Capacities are not negative. Not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

namespace pfrt {

class MinCut {
 public:
  static constexpr int64_t kInfinite = int64_t{1} << 60;
  static constexpr uint32_t kSource = 0, kSink = 1;

  uint32_t vertex() { return count_++; }
  void edge(uint32_t from, uint32_t to, int64_t capacity);
  // Returns the cost of the cut. Called once.
  int64_t solve();
  // Afterwards: whether a vertex is on the sink's side, which is the smallest that a cheapest cut
  // can have.
  const std::vector<bool>& sink_side() const { return sink_side_; }

 private:
  struct Edge {
    uint32_t to;
    int64_t left;
  };
  bool level();
  int64_t push(uint32_t vertex, int64_t most);
  void mark_sink_side();

  uint32_t count_ = 2;
  std::vector<Edge> edges_;  // each followed by its reverse
  std::vector<std::vector<uint32_t>> out_;
  std::vector<uint32_t> level_, next_;
  std::vector<bool> sink_side_;
};

}  // namespace pfrt
