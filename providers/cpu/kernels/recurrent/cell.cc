// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/recurrent/cell.h"

namespace pfrt::cpu {
namespace {

// clip bounds what goes into an activation.
template <typename T>
void activate(const Layer& layer, const Activation& activation, T* x, int64_t n) {
  if (layer.clip > 0) {
    const T bound = static_cast<T>(layer.clip);
    for (int64_t i = 0; i < n; ++i) x[i] = x[i] > bound ? bound : x[i] < -bound ? -bound : x[i];
  }
  activation.apply(x, n);
}

template <typename T>
void add_product(T* x, const T* a, const T* b, int64_t n) {
  if (a == nullptr) return;
  for (int64_t i = 0; i < n; ++i) x[i] += a[i] * b[i];
}

}  // namespace

template <typename T>
void finish_rnn(const Layer& layer, const Activation* activations, const Units<T>& u) {
  activate(layer, activations[0], u.gates[0], u.n);
  for (int64_t i = 0; i < u.n; ++i) u.after[i] = u.gates[0][i];
}

template <typename T>
void finish_lstm(const Layer& layer, const Activation* activations, const Units<T>& u) {
  T *const input = u.gates[0], *const output = u.gates[1];
  T *const forget = u.gates[2], *const candidate = u.gates[3];
  add_product(input, u.peepholes[0], u.state, u.n);
  activate(layer, activations[0], input, u.n);
  if (layer.input_forget) {
    for (int64_t i = 0; i < u.n; ++i) forget[i] = T{1} - input[i];
  } else {
    add_product(forget, u.peepholes[2], u.state, u.n);
    activate(layer, activations[0], forget, u.n);
  }
  activate(layer, activations[1], candidate, u.n);
  for (int64_t i = 0; i < u.n; ++i) {
    u.state[i] = forget[i] * u.state[i] + input[i] * candidate[i];
    u.after[i] = u.state[i];
  }
  add_product(output, u.peepholes[1], u.state, u.n);
  activate(layer, activations[0], output, u.n);
  activate(layer, activations[2], u.after, u.n);
  for (int64_t i = 0; i < u.n; ++i) u.after[i] *= output[i];
}

template <typename T>
void reset_gru(const Layer& layer, const Activation* activations, const Units<T>& u) {
  T* const reset = u.gates[1];
  activate(layer, activations[0], reset, u.n);
  for (int64_t i = 0; i < u.n; ++i) u.after[i] = reset[i] * u.before[i];
}

template <typename T>
void finish_gru(const Layer& layer, const Activation* activations, const Units<T>& u) {
  T *const update = u.gates[0], *const reset = u.gates[1], *const candidate = u.gates[2];
  activate(layer, activations[0], update, u.n);
  if (layer.linear_before_reset) {
    activate(layer, activations[0], reset, u.n);
    add_product(candidate, reset, u.gates[3], u.n);
  }
  activate(layer, activations[1], candidate, u.n);
  for (int64_t i = 0; i < u.n; ++i)
    u.after[i] = (T{1} - update[i]) * candidate[i] + update[i] * u.before[i];
}

#define PFRT_CELLS(T)                                                          \
  template void finish_rnn(const Layer&, const Activation*, const Units<T>&);  \
  template void finish_lstm(const Layer&, const Activation*, const Units<T>&); \
  template void reset_gru(const Layer&, const Activation*, const Units<T>&);   \
  template void finish_gru(const Layer&, const Activation*, const Units<T>&);
PFRT_CELLS(float)
PFRT_CELLS(double)
#undef PFRT_CELLS

}  // namespace pfrt::cpu
