// SPDX-License-Identifier: Apache-2.0
//
// The gates of one sequence in one step, once the matmuls have been added to them. Pure functions
// over the caller's memory; thread-safe.
#pragma once

#include <cstdint>

#include "providers/cpu/kernels/recurrent/layer.h"

namespace pfrt::cpu {

// |n| neighbouring units of one sequence. Gates are in ONNX's order, biases added; with
// linear_before_reset GRU's gate 3 is the recurrent part of the candidate.
template <typename T>
struct Units {
  int64_t n;
  T* gates[4];
  const T* before;        // the hidden state
  T* state;               // LSTM's cell state, replaced
  const T* peepholes[3];  // of input, output and forget gate; null: none
  T* after;               // the new hidden state
};

template <typename T>
void finish_rnn(const Layer& layer, const Activation* activations, const Units<T>& u);
template <typename T>
void finish_lstm(const Layer& layer, const Activation* activations, const Units<T>& u);
// Runs between the matmuls of a step of GRU, without linear_before_reset: |after| becomes the state
// that the candidate is computed from.
template <typename T>
void reset_gru(const Layer& layer, const Activation* activations, const Units<T>& u);
template <typename T>
void finish_gru(const Layer& layer, const Activation* activations, const Units<T>& u);

#define PFRT_CELLS(T)                                                                 \
  extern template void finish_rnn(const Layer&, const Activation*, const Units<T>&);  \
  extern template void finish_lstm(const Layer&, const Activation*, const Units<T>&); \
  extern template void reset_gru(const Layer&, const Activation*, const Units<T>&);   \
  extern template void finish_gru(const Layer&, const Activation*, const Units<T>&);
PFRT_CELLS(float)
PFRT_CELLS(double)
#undef PFRT_CELLS

}  // namespace pfrt::cpu
