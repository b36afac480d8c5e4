// SPDX-License-Identifier: Apache-2.0
//
// An RNN, GRU or LSTM node, checked: sizes, layout and options, and where each row of its tensors
// is. Immutable once made; thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "providers/cpu/kernels/recurrent/activation.h"

namespace pfrt::cpu {

enum class Cell : uint8_t { kRnn, kGru, kLstm };

// Inputs of all three operators; the last two are LSTM's.
enum LayerInput : uint32_t {
  kInputX,
  kInputW,
  kInputR,
  kInputB,
  kInputLengths,
  kInputHidden,
  kInputCell,
  kInputPeepholes,
};

struct Layer {
  static Result<Layer> make(const SnapshotNode& node);

  bool has(LayerInput i) const { return (inputs >> i & 1) != 0; }
  bool reversed(int64_t direction) const { return reverse || direction == 1; }
  int64_t gates() const { return cell == Cell::kLstm ? 4 : cell == Cell::kGru ? 3 : 1; }
  // The activations of one direction.
  const Activation* activations(int64_t direction) const {
    return &all_activations[static_cast<size_t>(direction) * all_activations.size() /
                            static_cast<size_t>(directions)];
  }
  // First element of a row of X, of an initial or last state, of Y.
  int64_t x_row(int64_t t, int64_t b) const {
    return (batch_first ? b * time + t : t * batch + b) * features;
  }
  int64_t state_row(int64_t direction, int64_t b) const {
    return (batch_first ? b * directions + direction : direction * batch + b) * hidden;
  }
  int64_t y_row(int64_t t, int64_t direction, int64_t b) const {
    return (batch_first ? (b * time + t) * directions + direction
                        : (t * directions + direction) * batch + b) *
           hidden;
  }

  Cell cell = Cell::kRnn;
  pfrt_dtype dtype = PFRT_DTYPE_UNSET;
  int64_t time = 0, batch = 0, features = 0, hidden = 0, directions = 1;
  bool batch_first = false, reverse = false;
  bool linear_before_reset = false, input_forget = false;
  bool wanted[3] = {};  // outputs Y, Y_h, Y_c
  double clip = 0;      // 0: none
  std::vector<Activation> all_activations;
  uint32_t inputs = 0;  // bit i: input i is there
};

}  // namespace pfrt::cpu
