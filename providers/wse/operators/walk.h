// SPDX-License-Identifier: Apache-2.0
//
// Going over the elements of several tensors at once by their strides: broadcasting, permuting,
// cutting. Strides count elements. Pure functions.
#pragma once

#include <array>
#include <span>

#include "providers/wse/operators/operators.h"

namespace pfrt::wse {

// -1 where |axis| is not one of |rank|; negative ones count from the end.
int64_t axis_of(int64_t axis, int64_t rank);
// The product of dimensions [begin, end).
int64_t elements_of(const Dims& dims, int64_t begin, int64_t end);
Dims strides_of(const Dims& dims);
// Whether a tensor of dimensions |from| can be repeated until it has |to|.
bool broadcasts(const Dims& from, const Dims& to);
// Its strides then: 0 along what is repeated. |broadcasts| must hold.
Dims broadcast_strides(const Dims& from, const Dims& to);
// Puts axes together that lie together in all tensors, and leaves out those of one element. At
// least one axis is left. |strides| has a list a tensor.
void collapse(Dims* dims, std::span<Dims> strides);

// Positions of |dims|, none of which is 0, in row-major order, and where each tensor's element is.
template <size_t kTensors>
class Walk {
 public:
  using Offsets = std::array<int64_t, kTensors>;

  Walk(Dims dims, std::array<Dims, kTensors> strides)
      : dims_(std::move(dims)), strides_(std::move(strides)), index_(dims_.size(), 0) {}

  const Offsets& at() const { return at_; }
  // Moves to the next position; false after the last.
  bool next() {
    for (size_t d = dims_.size(); d-- > 0;) {
      const bool wraps = ++index_[d] == dims_[d];
      for (size_t t = 0; t < kTensors; ++t)
        at_[t] += wraps ? -strides_[t][d] * (dims_[d] - 1) : strides_[t][d];
      if (!wraps) return true;
      index_[d] = 0;
    }
    return false;
  }

 private:
  Dims dims_;
  std::array<Dims, kTensors> strides_;
  Dims index_;
  Offsets at_{};
};

// fn(length, offsets, steps) for rows of |length| elements that cover |dims| in row-major order:
// element i of a row is at offsets[t] + i * steps[t] of tensor t.
template <size_t kTensors, typename Fn>
void each_row(Dims dims, std::array<Dims, kTensors> strides, Fn fn) {
  if (element_count(dims.data(), dims.size()) <= 0) return;
  collapse(&dims, strides);
  const int64_t length = dims.back();
  typename Walk<kTensors>::Offsets steps;
  dims.pop_back();
  for (size_t t = 0; t < kTensors; ++t) {
    steps[t] = strides[t].back();
    strides[t].pop_back();
  }
  Walk<kTensors> walk(std::move(dims), std::move(strides));
  do {
    fn(length, walk.at(), steps);
  } while (walk.next());
}

// Groups of elements that are reduced to one: element i of group g is at starts[g] + steps[i].
struct Groups {
  std::vector<int64_t> starts, steps;
};
// The groups along the axes that |reduced| names; both lists are in row-major order.
Groups groups_of(const Dims& dims, const std::vector<bool>& reduced);

}  // namespace pfrt::wse
