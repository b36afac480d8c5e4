// SPDX-License-Identifier: Apache-2.0
//
// Positions of a broadcast operand's elements for those of the tensor that it is broadcast to, when
// all dimensions are known. Neighbouring dimensions in which the operand behaves alike are merged;
// the innermost is a run, along which it has neighbours or stays on one element. Immutable;
// thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "providers/cpu/loop/broadcast_pattern.h"

namespace pfrt::cpu {

class BroadcastIndex {
 public:
  // nullopt when |own| does not broadcast to |whole|, or changes too often between dimensions.
  static std::optional<BroadcastIndex> make(Dims own, Dims whole);

  int64_t run() const { return extents_[0]; }
  bool stays() const { return strides_[0] == 0; }
  bool whole() const { return count_ == 1 && !stays(); }
  // The operand's element for element |i| of the whole, and how many of its run begin with that.
  struct Place {
    int64_t index, left;
  };
  Place at(int64_t i) const;
  // Copies the operand's elements, of |size| bytes (1, 2, 4 or 8), for [from, from + n) of the
  // whole to |out|, behind which kSlack bytes may be written too.
  static constexpr int64_t kSlack = 16;
  void gather(const void* base, int64_t size, int64_t from, int64_t n, void* out) const;

 private:
  static constexpr size_t kMost = 6;
  template <typename T>
  void gather_as(const T* base, int64_t from, int64_t n, T* out) const;

  size_t count_ = 1;
  // Innermost first.
  std::array<int64_t, kMost> extents_{1}, strides_{1};
};

}  // namespace pfrt::cpu
