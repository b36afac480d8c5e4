// SPDX-License-Identifier: Apache-2.0
//
// Constant columns of float32 products in bfloat16, rounded to nearest even once, by the host: half
// as many bytes to read and to keep. A panel is 16 columns, padded with 0, and all of k, two by
// two: a 32-bit lane has the even k of its column in the low half and the odd one in the high half,
// 0 where there is none. For AVX2 and up. Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "providers/cpu/kernel.h"
#include "providers/cpu/kernels/matmul/columns.h"

namespace pfrt::cpu {

inline constexpr std::string_view kBfloat16Columns = "bfloat16_columns/";  // how its recipe begins

// What |columns|, input 1 of the node, are packed to where the node's precision allows bfloat16;
// nothing where they are too few to gain by it.
std::optional<PackedInput> pack_bfloat16_columns(const SnapshotNode& node, const Columns& columns);

struct Bfloat16Panel {
  static constexpr int64_t kColumns = 16;
  // From a panel to the next.
  static constexpr int64_t lanes(int64_t k) { return kColumns * ((k + 1) / 2); }
  // k [k0, k0 + depth) of a panel in float32, 16 columns a k, to |to|; k0 is even. An odd depth
  // writes one k more.
  static void widen(const uint32_t* panel, int64_t k0, int64_t depth, float* to);
};

}  // namespace pfrt::cpu
