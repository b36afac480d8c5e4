// SPDX-License-Identifier: Apache-2.0
//
// Constant columns of products in 16 bits, packed once by the host: those of float16 and bfloat16
// nodes as they are, those of float32 ones rounded to bfloat16 where the session allows it; half as
// many bytes to read and to keep. A panel is 16 columns, padded with 0, and all of k, two by two,
// in 16 lanes of 32 bits. Of bfloat16 a lane has the even k of its column in the low half and the
// odd one in the high half; of float16 all of the even k come before all of the odd one. Where
// there is no odd k it is 0. For AVX2 and up. Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "providers/cpu/kernels/matmul/constant_columns.h"
#include "providers/cpu/row/row.h"

namespace pfrt::cpu {

inline constexpr std::string_view kColumns16Bit = "columns_16bit/";  // how its recipe begins

enum class ColumnType : uint8_t { kBf16, kFp16 };
// What the columns of the node are packed to, if they are.
ColumnType column_type(const SnapshotNode& node);

// What |columns|, input 1 of the node, are packed to where its type or precision allows 16 bits;
// nothing where they are too few to gain by it.
std::optional<PackedInput> pack_columns_16bit(const SnapshotNode& node, const Columns& columns);

struct Panel16Bit {
  static constexpr int64_t kColumns = 16;
  // From a panel to the next.
  static constexpr int64_t lanes(int64_t k) { return kColumns * ((k + 1) / 2); }
  // k [k0, k0 + depth) of a panel in float32, 16 columns a k, to |to|; k0 is even. An odd depth
  // may write one k more.
  static void widen(ColumnType type, const uint32_t* panel, int64_t k0, int64_t depth, float* to);
};

}  // namespace pfrt::cpu
