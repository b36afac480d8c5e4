// SPDX-License-Identifier: Apache-2.0
//
// Constant columns of matmuls in 16 bits, packed once by the host: those of float16 and bfloat16
// nodes as they are, those of float32 nodes rounded to bfloat16 where the session allows it. They
// are half as many bytes to read and to keep. A panel is 16 columns, padded with 0, and all of k;
// two neighbours of k are 16 lanes of 32 bits. With bfloat16, a lane holds its column's even k in
// the low half and the odd k in the high half, as PanelMicrokernel::get_bf16_dot takes them. With
// float16, the 16 elements of the even k come before those of the odd k. An odd k that is missing
// is 0. For AVX2 and up. Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "providers/cpu/kernel/row.h"
#include "providers/cpu/kernels/matmul/constant_columns.h"

namespace pfrt::cpu {

inline constexpr std::string_view kColumns16Bit = "columns_16bit/";  // beginning of its recipe

enum class ColumnType : uint8_t { kBf16, kFp16 };
// The type that columns of the node are packed to, if they are.
ColumnType column_type(const SnapshotNode& node);

// Packs |columns|, input 1 of the node, to 16 bits where its type or precision allows that. nullopt
// where it does not, or where the columns are too few to gain by it: fewer are enough for |dot|
// products.
std::optional<PackedInput> pack_columns_16bit(const SnapshotNode& node, const Columns& columns,
                                              bool dot);

struct Panel16Bit {
  static constexpr int64_t kColumns = 16;
  // Lanes from a panel to the next.
  static constexpr int64_t lanes(int64_t k) { return kColumns * ((k + 1) / 2); }
  // Writes k [k0, k0 + depth) of a panel to |to| in float32, 16 columns for each k; k0 is even.
  // With an odd depth one more k may be written.
  static void widen(ColumnType type, const uint32_t* panel, int64_t k0, int64_t depth, float* to);
};

// All panels, then a number for each: of bfloat16, its reach (bf16_pairs.h). Borrows the memory.
class Columns16Bit {
 public:
  Columns16Bit(const uint32_t* packed, int64_t n, int64_t k) : packed_(packed), n_(n), k_(k) {}
  static uint64_t bytes(int64_t n, int64_t k) {
    const int64_t panels = (n + Panel16Bit::kColumns - 1) / Panel16Bit::kColumns;
    return static_cast<uint64_t>(panels * (Panel16Bit::lanes(k) + 1)) * sizeof(uint32_t);
  }
  int64_t k() const { return k_; }
  const uint32_t* panel(int64_t i) const { return packed_ + i * Panel16Bit::lanes(k_); }
  // The largest reach of columns [j, j + n), from a panel's first on; NaN if a panel's is NaN.
  float reach(int64_t j, int64_t n) const;

 private:
  const uint32_t* packed_;
  int64_t n_, k_;
};

}  // namespace pfrt::cpu
