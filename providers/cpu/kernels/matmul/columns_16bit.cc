// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/matmul/columns_16bit.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "core/base/half.h"
#include "providers/cpu/elements/ceil_div.h"
#include "providers/cpu/elements/float_16bit.h"
#include "providers/cpu/isa/isa.h"
#include "providers/cpu/kernels/matmul/bf16_pairs.h"
#include "providers/cpu/kernels/matmul/gemm.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kPanel = Panel16Bit::kColumns;

__attribute__((target("avx2"))) void round_pairs(const float* even, const float* odd,
                                                 uint32_t* to) {
  for (int64_t j = 0; j < kPanel; ++j)
    to[j] = float_to_bfloat16(even[j]) | static_cast<uint32_t>(float_to_bfloat16(odd[j])) << 16;
}

void pack(const Columns& c, pfrt_dtype dtype, ColumnType type, const void* source, uint32_t* to) {
  constexpr float kNothing[kPanel] = {};
  const StridedSource<float> columns(source, dtype, 0, c.outer_stride, c.k_stride);
  const NarrowFn narrow = narrow_fn(PFRT_DTYPE_FLOAT16);
  // If the columns of a row are contiguous, a few rows are read at a time, in their order.
  const int64_t rows = c.outer_stride == 1 ? 16 : 256;
  std::vector<float> block(static_cast<size_t>(rows * kPanel));
  for (int64_t k = 0; k < c.k; k += rows)
    for (int64_t first = 0; first < c.n; first += kPanel) {
      const int64_t depth = std::min(rows, c.k - k);
      columns.pack(block.data(), kPanel, first, std::min(kPanel, c.n - first), k, depth);
      uint32_t* const pairs = to + first / kPanel * Panel16Bit::lanes(c.k) + k / 2 * kPanel;
      for (int64_t i = 0; i < depth; i += 2) {
        const float* const even = block.data() + i * kPanel;
        const float* const odd = i + 1 < depth ? even + kPanel : kNothing;
        uint32_t* const pair = pairs + i / 2 * kPanel;
        if (type == ColumnType::kBf16) {
          round_pairs(even, odd, pair);
        } else {
          uint16_t* const both = reinterpret_cast<uint16_t*>(pair);
          narrow(even, both, kPanel);
          narrow(odd, both + kPanel, kPanel);
        }
      }
    }
  const int64_t panels = ceil_div(c.n, kPanel), lanes = Panel16Bit::lanes(c.k);
  for (int64_t p = 0; p < panels; ++p)
    to[panels * lanes + p] =
        type == ColumnType::kBf16 ? std::bit_cast<uint32_t>(reach_of(to + p * lanes, lanes)) : 0;
}

}  // namespace

float Columns16Bit::reach(int64_t j, int64_t n) const {
  const uint32_t* const reaches = panel(ceil_div(n_, kPanel));
  float most = 0;
  for (int64_t p = j / kPanel; p < ceil_div(j + n, kPanel); ++p) {
    const float reach = std::bit_cast<float>(reaches[p]);
    if (!(reach <= most)) most = reach;
    if (std::isnan(most)) break;
  }
  return most;
}

ColumnType column_type(const SnapshotNode& node) {
  return node.input_dtype(0) == PFRT_DTYPE_FLOAT16 ? ColumnType::kFp16 : ColumnType::kBf16;
}

std::optional<PackedInput> pack_columns_16bit(const SnapshotNode& node, const Columns& c,
                                              bool dot) {
  // Fewer columns than a panel would be padded to as many bytes as they have in float32.
  constexpr int64_t kLeastElements = 64 << 10, kLeastOfDot = 4 << 10;
  constexpr int64_t kLeastColumns = kPanel, kLeastOf16Bit = 8;
  const pfrt_dtype dtype = node.input_dtype(0);
  if (isa() < Isa::kAvx2 || node.input_dtype(1) != dtype || !node.is_constant(1) || c.k < 1)
    return std::nullopt;
  if (is_16bit_float(dtype)
          ? c.n < kLeastOf16Bit
          : dtype != PFRT_DTYPE_FLOAT32 || node.precision() != Precision::kBfloat16 ||
                c.n < kLeastColumns || c.n * c.k < (dot ? kLeastOfDot : kLeastElements))
    return std::nullopt;
  PackedInput packed;
  packed.input = 1;
  packed.recipe = message(kColumns16Bit, dtype_name(dtype), "/pairs/", kPanel, "/", c.n, "x", c.k,
                          "/", c.outer_stride, "/", c.k_stride);
  packed.bytes = Columns16Bit::bytes(c.n, c.k);
  packed.pack = [c, dtype, type = column_type(node)](const void* source, void* out) {
    pack(c, dtype, type, source, static_cast<uint32_t*>(out));
  };
  return packed;
}

__attribute__((target("avx2"))) void Panel16Bit::widen(ColumnType type, const uint32_t* panel,
                                                       int64_t k0, int64_t depth, float* to) {
  const uint32_t* pairs = panel + k0 / 2 * kColumns;
  if (type == ColumnType::kFp16)
    return widen_fn(PFRT_DTYPE_FLOAT16)(reinterpret_cast<const uint16_t*>(pairs), to,
                                        depth * kColumns);
  for (int64_t i = 0; i < depth; i += 2, pairs += kColumns, to += 2 * kColumns)
    for (int64_t j = 0; j < kColumns; ++j) {
      to[j] = std::bit_cast<float>(pairs[j] << 16);
      to[kColumns + j] = std::bit_cast<float>(pairs[j] & 0xffff0000);
    }
}

}  // namespace pfrt::cpu
