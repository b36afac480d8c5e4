// SPDX-License-Identifier: Apache-2.0
//
// Random numbers that a seed determines on every machine. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace pfrt_optimise {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t operator()() {  // splitmix64
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  // Returns an integer between |low| and |high|, both included.
  int64_t range(int64_t low, int64_t high) {
    return low + static_cast<int64_t>((*this)() % static_cast<uint64_t>(high - low + 1));
  }
  double uniform(double low, double high) {
    return low + (high - low) * static_cast<double>((*this)() >> 11) * 0x1p-53;
  }
  bool chance(int percent) { return range(0, 99) < percent; }
  template <class T>
  const T& of(const std::vector<T>& choices) {
    return choices[static_cast<size_t>(range(0, static_cast<int64_t>(choices.size()) - 1))];
  }
  template <class T>
  T of(std::initializer_list<T> choices) {
    return choices.begin()[range(0, static_cast<int64_t>(choices.size()) - 1)];
  }

 private:
  uint64_t state_;
};

}  // namespace pfrt_optimise
