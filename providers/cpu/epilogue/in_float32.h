// SPDX-License-Identifier: Apache-2.0
//
// Kernels that compute in float32 for nodes of float16 and bfloat16: what they read is widened to
// memory of the step, and ranges of what they write are rounded once they are final, in the cache.
// Pure functions; thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>

#include "providers/cpu/elements/float_16bit.h"
#include "providers/cpu/kernel/row.h"

namespace pfrt::cpu {

// Tensors that the kernel sees in place of the node's.
struct Widened {
  static constexpr uint32_t kMostInputs = 3;
  std::array<const float*, kMostInputs> inputs{};  // null: the node's own
  void* output = nullptr;                          // 0
  NarrowFn narrow = nullptr;                       // null: the kernel rounds by itself
  // Gets elements [begin, end) of |output| when they are final, on any thread, in the place of the
  // step's own epilogue. May be null.
  const std::function<void(int64_t begin, int64_t end)>* take = nullptr;
};

// Says by which code output 0 is rounded. Either the kernel writes float32 and calls
// Run::apply_epilogue on each element, and the step rounds; or the kernel writes the node's own
// type.
enum class Rounding16Bit : uint8_t { kByStep, kByKernel };

// Makes |kernel| read |inputs|, as far as the node has them, as float32. Returns it unchanged where
// the node is of float32.
Kernel in_float32(const SnapshotNode& node, std::initializer_list<uint32_t> inputs, Kernel kernel,
                  Rounding16Bit rounding = Rounding16Bit::kByStep);

// Lets |packed| be packed from a constant of 16 bits, though its function reads float32.
PackedInput packed_from_float32(const SnapshotNode& node, PackedInput packed);

}  // namespace pfrt::cpu
