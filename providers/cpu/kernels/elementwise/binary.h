// SPDX-License-Identifier: Apache-2.0
//
// Kernels of two broadcast tensors. An operator is a stateless generic function (T, T) -> T, or ->
// bool for a comparison; binary_row and compare_row make its loops over the compute types and its
// table row. Thread-safe.
#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "providers/cpu/elements/convert.h"
#include "providers/cpu/kernel/row.h"

namespace pfrt::cpu {

// A run of |n|: each operand advances by its step, 0 or 1.
template <typename T, typename R>
using BinaryLoop = void (*)(const T* a, int64_t a_step, const T* b, int64_t b_step, R* y,
                            int64_t n);
using BinaryLoops = std::tuple<BinaryLoop<float, float>, BinaryLoop<double, double>,
                               BinaryLoop<int64_t, int64_t>, BinaryLoop<uint64_t, uint64_t>>;
using CompareLoops = std::tuple<BinaryLoop<float, uint8_t>, BinaryLoop<double, uint8_t>,
                                BinaryLoop<int64_t, uint8_t>, BinaryLoop<uint64_t, uint8_t>>;

template <auto fn, typename T, typename R>
void binary_loop(const T* a, int64_t a_step, const T* b, int64_t b_step, R* y, int64_t n) {
  if (a_step != 0 && b_step != 0) {
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<R>(fn(a[i], b[i]));
  } else if (a_step != 0) {
    const T right = *b;
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<R>(fn(a[i], right));
  } else {
    const T left = *a;
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<R>(fn(left, b[i * b_step]));
  }
}

template <auto fn, On on, typename T, typename R>
constexpr BinaryLoop<T, R> binary_loop_for() {
  if constexpr (kMadeFor<on, T>)
    return binary_loop<fn, T, R>;
  else
    return nullptr;
}

template <auto fn, On on>
constexpr BinaryLoops binary_loops() {
  return {binary_loop_for<fn, on, float, float>(), binary_loop_for<fn, on, double, double>(),
          binary_loop_for<fn, on, int64_t, int64_t>(),
          binary_loop_for<fn, on, uint64_t, uint64_t>()};
}
template <auto fn>
constexpr CompareLoops compare_loops() {
  return {binary_loop<fn, float, uint8_t>, binary_loop<fn, double, uint8_t>,
          binary_loop<fn, int64_t, uint8_t>, binary_loop<fn, uint64_t, uint8_t>};
}

// Integer operands that are refused.
enum class Rejects : uint8_t { kNothing, kZeroDivisor };

// Inputs 0 and 1 to output 0, computed as input 0's type.
Result<Kernel> make_binary(const SnapshotNode& node, const BinaryLoops& loops,
                           Rejects rejects = Rejects::kNothing);
// Computes in |compute|'s type, which need not be either input's.
Result<Kernel> make_binary_as(const SnapshotNode& node, pfrt_dtype compute,
                              const BinaryLoops& loops, Rejects rejects = Rejects::kNothing);
Result<Kernel> make_compare(const SnapshotNode& node, const CompareLoops& loops);

template <auto fn, On on, Rejects rejects>
Result<Kernel> make_binary_of(const KernelRequest& node) {
  return make_binary(node, binary_loops<fn, on>(), rejects);
}
template <auto fn>
Result<Kernel> make_compare_of(const KernelRequest& node) {
  return make_compare(node, compare_loops<fn>());
}

template <auto fn, On on, Rejects rejects = Rejects::kNothing>
constexpr KernelRow binary_row(std::string_view op, Types types, std::string_view name) {
  return with_epilogue({"", op, types, name, "generic", nullptr, make_binary_of<fn, on, rejects>});
}
template <auto fn>
constexpr KernelRow compare_row(std::string_view op, Types types, std::string_view name) {
  return {"", op, types, name, "generic", nullptr, make_compare_of<fn>};
}

}  // namespace pfrt::cpu
