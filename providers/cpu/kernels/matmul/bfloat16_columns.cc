// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/matmul/bfloat16_columns.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "core/base/half.h"
#include "providers/cpu/isa/isa.h"
#include "providers/cpu/kernels/matmul/gemm.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kPanel = Bfloat16Panel::kColumns;

__attribute__((target("avx2"))) void round_pairs(const float* even, const float* odd,
                                                 uint32_t* to) {
  for (int64_t j = 0; j < kPanel; ++j)
    to[j] = float_to_bfloat16(even[j]) | static_cast<uint32_t>(float_to_bfloat16(odd[j])) << 16;
}

void pack(const Columns& c, const float* source, uint32_t* to) {
  constexpr float kNothing[kPanel] = {};
  const StridedSource<float> columns(source, PFRT_DTYPE_FLOAT32, 0, c.outer_stride, c.k_stride);
  // Where a row's columns are neighbours few rows are read at a time, in their order.
  const int64_t rows = c.outer_stride == 1 ? 16 : 256;
  std::vector<float> block(static_cast<size_t>(rows * kPanel));
  for (int64_t k = 0; k < c.k; k += rows)
    for (int64_t first = 0; first < c.n; first += kPanel) {
      const int64_t depth = std::min(rows, c.k - k);
      columns.pack(block.data(), kPanel, first, std::min(kPanel, c.n - first), k, depth);
      uint32_t* const pairs = to + first / kPanel * Bfloat16Panel::lanes(c.k) + k / 2 * kPanel;
      for (int64_t i = 0; i < depth; i += 2) {
        const float* const even = block.data() + i * kPanel;
        round_pairs(even, i + 1 < depth ? even + kPanel : kNothing, pairs + i / 2 * kPanel);
      }
    }
}

}  // namespace

std::optional<PackedInput> pack_bfloat16_columns(const SnapshotNode& node, const Columns& c) {
  // Fewer columns than a panel would be padded to what their float32 numbers take.
  constexpr int64_t kLeastNumbers = 64 << 10, kLeastColumns = kPanel;
  if (node.precision() != Precision::kBfloat16 || isa() < Isa::kAvx2 ||
      node.input_dtype(0) != PFRT_DTYPE_FLOAT32 || !node.is_constant(1) || c.n < kLeastColumns ||
      c.k < 1 || c.n * c.k < kLeastNumbers)
    return std::nullopt;
  PackedInput packed;
  packed.input = 1;
  packed.recipe = message(kBfloat16Columns, "pairs/", kPanel, "/", c.n, "x", c.k, "/",
                          c.outer_stride, "/", c.k_stride);
  packed.bytes = static_cast<uint64_t>(((c.n + kPanel - 1) / kPanel) * Bfloat16Panel::lanes(c.k)) *
                 sizeof(uint32_t);
  packed.pack = [c](const void* source, void* out) {
    pack(c, static_cast<const float*>(source), static_cast<uint32_t*>(out));
  };
  return packed;
}

__attribute__((target("avx2"))) void Bfloat16Panel::widen(const uint32_t* panel, int64_t k0,
                                                          int64_t depth, float* to) {
  const uint32_t* pairs = panel + k0 / 2 * kColumns;
  for (int64_t i = 0; i < depth; i += 2, pairs += kColumns, to += 2 * kColumns)
    for (int64_t j = 0; j < kColumns; ++j) {
      to[j] = std::bit_cast<float>(pairs[j] << 16);
      to[kColumns + j] = std::bit_cast<float>(pairs[j] & 0xffff0000);
    }
}

}  // namespace pfrt::cpu
