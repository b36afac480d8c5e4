// SPDX-License-Identifier: Apache-2.0
//
// Products with constant columns, which are packed once: for tiles (tiles.h) where the machine has
// them, for vectors (panels.h), or in 16 bits (columns_16bit.h). Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "providers/cpu/kernels/matmul/constant_columns.h"
#include "providers/cpu/row/row.h"

namespace pfrt::cpu {

// What |columns|, input 1 of the node, are packed to for a product of at least |m| rows, or of any
// number from there on; nothing where it is better off without.
std::optional<PackedInput> pack_columns(const SnapshotNode& node, int64_t m, bool any,
                                        const Columns& columns);
// What kernels are called that read the one form or the other.
struct PackedNames {
  std::string_view tiles, panels, bfloat16_rows, bfloat16_panels, float16_rows, float16_panels;
};
// Whether a product of |m| rows reads them; if not, it takes the columns as they are.
bool reads_packed(const PackedInput& packed, int64_t m);
// A kernel that reads them: input 0, |m| rows of k numbers, by the columns to output 0.
Kernel packed_matmul(const PackedInput& packed, const SnapshotNode& node, int64_t m,
                     const Columns& columns, const PackedNames& names,
                     std::function<Finish(const Run&)> finish);

}  // namespace pfrt::cpu
