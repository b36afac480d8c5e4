// SPDX-License-Identifier: Apache-2.0
//
// Matmuls with constant columns, which are packed once: for tiles (tiles.h) where the machine has
// them, for vectors (panels.h), or in 16 bits (columns_16bit.h). Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "providers/cpu/kernel/row.h"
#include "providers/cpu/kernels/matmul/constant_columns.h"

namespace pfrt::cpu {

// Packs |columns|, input 1 of the node, for a matmul of |m| rows; with |any|, of |m| rows or more.
// nullopt where packing is not worth it.
std::optional<PackedInput> pack_columns(const SnapshotNode& node, int64_t m, bool any,
                                        const Columns& columns);
// Names of the kernels, by the form of columns that they read.
struct PackedNames {
  std::string_view tiles, panels, bfloat16_rows, bfloat16_panels, bfloat16_dot, float16_rows,
      float16_panels;
};
// Whether a matmul of |m| rows reads |packed|; if not, it reads the columns as they are.
bool reads_packed(const PackedInput& packed, const SnapshotNode& node, int64_t m);
// The kernel that reads |packed|: input 0, |m| rows of k elements, times the columns to output 0.
Kernel packed_matmul(const PackedInput& packed, const SnapshotNode& node, int64_t m,
                     const Columns& columns, const PackedNames& names,
                     std::function<Finish(const Run&)> finish);

}  // namespace pfrt::cpu
