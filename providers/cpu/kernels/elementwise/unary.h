// SPDX-License-Identifier: Apache-2.0
//
// Kernels of one tensor, element by element. An operator is a stateless generic function T -> T, or
// (T, Coefficients) -> T when it has attributes; unary_row makes its loops over the compute types
// and its table row. Thread-safe.
#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "providers/cpu/elements/convert.h"
#include "providers/cpu/kernel/row.h"

namespace pfrt::cpu {

// Attributes, decoded.
struct Coefficients {
  double a = 0, b = 0;
};

template <typename T>
using UnaryLoop = void (*)(const T* x, T* y, int64_t n, const Coefficients& coefficients);
using UnaryLoops =
    std::tuple<UnaryLoop<float>, UnaryLoop<double>, UnaryLoop<int64_t>, UnaryLoop<uint64_t>>;

template <auto fn, typename T>
void unary_loop(const T* x, T* y, int64_t n, const Coefficients& coefficients) {
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_invocable_v<decltype(fn), T, const Coefficients&>)
      y[i] = static_cast<T>(fn(x[i], coefficients));
    else
      y[i] = static_cast<T>(fn(x[i]));
  }
}

template <auto fn, On on, typename T>
constexpr UnaryLoop<T> unary_loop_for() {
  if constexpr (kMadeFor<on, T>)
    return unary_loop<fn, T>;
  else
    return nullptr;
}

template <auto fn, On on>
constexpr UnaryLoops unary_loops() {
  return {unary_loop_for<fn, on, float>(), unary_loop_for<fn, on, double>(),
          unary_loop_for<fn, on, int64_t>(), unary_loop_for<fn, on, uint64_t>()};
}

// Input 0 to output 0, of equal dimensions; |cost| is operations an element.
Result<Kernel> make_unary(const SnapshotNode& node, const UnaryLoops& loops,
                          const Coefficients& coefficients, double cost);

inline Coefficients no_coefficients(const SnapshotNode&) { return {}; }

template <auto fn, On on, int cost, Coefficients (*read)(const SnapshotNode&)>
Result<Kernel> make_unary_of(const KernelRequest& node) {
  return make_unary(node, unary_loops<fn, on>(), read(node), cost);
}

template <auto fn, On on, int cost, Coefficients (*read)(const SnapshotNode&) = no_coefficients>
constexpr KernelRow unary_row(std::string_view op, Types types, std::string_view name) {
  return with_epilogue(
      {"", op, types, name, "generic", nullptr, make_unary_of<fn, on, cost, read>});
}

}  // namespace pfrt::cpu
