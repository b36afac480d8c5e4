// SPDX-License-Identifier: Apache-2.0
//
// Factors of a product of bytes as DotMicrokernel reads them. Columns are packed to panels of 16,
// step by step of k, with the sum of each column behind them and, where the microkernel multiplies
// crosswise, its own products. Rows are read in place where their elements are what the microkernel
// takes; otherwise they are copied. Because vpdpbusd wants rows without sign and columns with it,
// 128 is added to int8 rows there and subtracted from uint8 columns, and so it is with their zero
// points. An element "as it counts" is the element after that shift. Tiles read the same panels,
// and rows of either sign as they are. Values and pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "providers/cpu/elements/ceil_div.h"
#include "providers/cpu/jit/dot_microkernel.h"
#include "pyflame_rt/types.h"

namespace pfrt::cpu {

// Columns of k bytes, int8 or uint8, in the layout of a microkernel.
class DotColumns {
 public:
  DotColumns(int64_t n, int64_t k, pfrt_dtype dtype, const DotMicrokernel& microkernel)
      : n_(n),
        k_(k),
        is_signed_(dtype == PFRT_DTYPE_INT8),
        bytes_(microkernel.bytes()),
        crosswise_(microkernel.crosswise()),
        steps_(microkernel.steps(k)) {}

  int64_t panels() const { return ceil_div(n_, DotMicrokernel::kPanel); }
  int64_t panel_bytes() const {
    return steps_ * DotMicrokernel::kPanel * DotMicrokernel::kStepBytes;
  }
  uint64_t bytes() const {
    return static_cast<uint64_t>(panels()) *
           (static_cast<uint64_t>(panel_bytes()) +
            (crosswise_ ? 2 : 1) * DotMicrokernel::kPanel * sizeof(int32_t));
  }
  // Names the layout completely.
  std::string recipe() const;
  // Added to each element by the packing.
  int32_t shift() const { return bytes_ && !is_signed_ ? -128 : 0; }
  // Element (i, j) is source[i * k_stride + j * column_stride]. |out| has bytes(), aligned to 4.
  void pack(const void* source, int64_t k_stride, int64_t column_stride, void* out) const;
  // The sum of each column, as its elements count; 0 in columns that fill up the last panel.
  const int32_t* sums(const void* packed) const {
    return reinterpret_cast<const int32_t*>(static_cast<const char*>(packed) +
                                            panels() * panel_bytes());
  }
  bool crosswise() const { return crosswise_; }
  // The own products of each column, modulo 2^32, where it is multiplied crosswise.
  const uint32_t* own_products(const void* packed) const {
    return reinterpret_cast<const uint32_t*>(sums(packed)) + panels() * DotMicrokernel::kPanel;
  }

 private:
  // Adds the products of steps |s| and s - 1 of a panel.
  static void add_own_products(const char* panel, int64_t s, int32_t* own);
  // 16 columns or fewer of a step of |count| k; adds what they count to |sums|.
  void pack_step(const uint8_t* from, int64_t k_stride, int64_t column_stride, int64_t count,
                 int64_t columns, char* out, int32_t* sums) const;
  int64_t line(int64_t s) const { return crosswise_ ? s ^ 1 : s; }
  int64_t n_, k_;
  bool is_signed_, bytes_, crosswise_;
  int64_t steps_;
};

// Rows of k bytes, int8 or uint8, for a microkernel.
class DotRows {
 public:
  // Makes rows for |microkernel|; with |on_tiles| for DotTileMicrokernel, where |microkernel| is
  // for bytes.
  DotRows(int64_t k, pfrt_dtype dtype, const DotMicrokernel& microkernel, bool on_tiles = false)
      : k_(k),
        is_signed_(dtype == PFRT_DTYPE_INT8),
        bytes_(microkernel.bytes()),
        on_tiles_(on_tiles),
        row_bytes_(microkernel.steps(k) * DotMicrokernel::kStepBytes) {}

  bool in_place() const { return bytes_ && row_bytes_ == k_; }
  int64_t row_bytes() const { return row_bytes_; }
  bool is_signed() const { return is_signed_; }
  bool flipped() const { return bytes_ && is_signed_ && !on_tiles_; }  // DotMicrokernel::run
  int32_t shift() const { return flipped() ? 128 : 0; }                // see DotColumns::shift
  // A copy of a row, row_bytes() long; what fills it up is 0 after the shift. Gives its own
  // products (int16_dot.h) where elements become int16, and else 0.
  uint32_t copy(const void* row, void* out) const;
  // The sum of a row's elements, as they count.
  int32_t sum(const void* row) const;

 private:
  int64_t k_;
  bool is_signed_, bytes_, on_tiles_;
  int64_t row_bytes_;
};

}  // namespace pfrt::cpu
