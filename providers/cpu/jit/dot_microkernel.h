// SPDX-License-Identifier: Apache-2.0
//
// Machine code for the innermost product of integers that have one factor packed: rows of A, read
// where they lie, by panels of 16 columns of B. A step of k is 32 bits of a row and of a column:
// four bytes, of A without and of B with sign (vpdpbusd), or two int16 (vpmaddwd), as the machine
// has it. Sums are int32 modulo 2^32, so that every form has the same bits. Immutable; thread-safe.
//
// Two steps of int16, a and b of each, are multiplied crosswise (S. Winograd, "A new algorithm for
// inner product", IEEE Trans. Comput. C-17, 1968): (a0 + b1) (a1 + b0) is a0 b0 + a1 b1, and a0 a1,
// which is the row's own, and b0 b1, which is the column's. That takes one multiplication for two
// and leaves processors free to add, where multiplications take turns in few of their pipes. The
// caller subtracts the products that are the row's and the column's own (own_products in
// kernels/matmul/int16_dot.h).
#pragma once

#include <cstdint>

#include "providers/cpu/jit/panel_microkernel.h"

namespace pfrt::cpu {

class DotMicrokernel {
 public:
  static constexpr int64_t kPanel = 16;     // columns
  static constexpr int64_t kStepBytes = 4;  // of a row, and of a column
  static constexpr int64_t kMostRows = 12, kMostPanels = 4;
  using RowBlocks = PanelMicrokernel::RowBlocks;

  // Returns the microkernel for dot_instructions(); nullptr where there are none, or code cannot be
  // made executable.
  static const DotMicrokernel* get();
  // Returns get() without crosswise products of int16. It is for short rows, where own products and
  // their subtraction would cost more than the multiplications that they save.
  static const DotMicrokernel* plain();

  bool bytes() const { return bytes_; }  // elements; else they are int16
  int64_t step() const { return bytes_ ? 4 : 2; }
  int64_t element_bytes() const { return kStepBytes / step(); }
  bool crosswise() const { return crosswise_; }
  int64_t steps(int64_t k) const {  // an even number where they are multiplied crosswise
    return bytes_ ? (k + 3) / 4 : crosswise_ ? (k + 3) / 4 * 2 : (k + 1) / 2;
  }
  // The line of a panel in which step s of columns lies.
  int64_t line(int64_t s) const { return crosswise() ? s ^ 1 : s; }

  // Rounding of sums to bytes: the nearest whole number of sum * scale, plus |zero|, saturated, as
  // RequantizeFns does it. Holds vectors as the code reads them.
  struct Bytes {
    Bytes(int32_t zero, bool is_signed);
    int16_t zeros[16];  // bytes with sign are computed as those of 128 more
    uint8_t flips[32];
    int32_t order[8];
  };
  // Whether Blocks::out may be given.
  bool requantizes() const { return requantizes_; }

  // Step s of chunk c of row r of A is at a + offsets[c] + r * a_row + 4 s, in bytes; that of
  // column j of panel p of B at b + p * b_panel + ((c * depth + line(s)) * 16 + j) * 4. C's element
  // is c[r * c_row + p * c_panel + j]. An int16 of A and one of B have a sum in int16.
  struct Blocks {
    const void* a;
    const int64_t* offsets;
    int64_t a_row;
    int64_t chunks, depth;  // both 1 or more; depth as steps() gives it
    const void* b;
    int64_t b_panel;
    int32_t* c;
    int64_t c_row, c_panel;
    // The sums are added to these: 16 a panel, panels |start_panel| apart, equal for all rows, plus
    // one for each row where |row_start| is not null. Without |start| they are added to what C
    // holds.
    const int32_t* start;
    int64_t start_panel;
    const int32_t* row_start;
    // If |out| is not null, bytes are written there instead of sums to C: 16 a row and panel, with
    // 16 |scales| a panel, all below 1 in size.
    uint8_t* out;
    int64_t out_row, out_panel;  // bytes
    const float* scales;
    const Bytes* bytes;
    // Data that is read next: |next_lines| lines of 64 bytes of it are fetched with each row block;
    // 0 for none.
    const void* next;
    int64_t next_lines;
    int64_t row_blocks;  // set by run
  };
  int64_t rows() const { return rows_; }
  // Number of panels that are multiplied together with so many rows, 1 to rows(). Few rows take as
  // long as their panels take to read; reading in several places at once keeps more of memory on
  // its way.
  int64_t panels(int64_t rows) const { return panels_[rows - 1]; }
  RowBlocks row_blocks(int64_t n) const { return PanelMicrokernel::row_blocks(n, rows_); }
  // Multiplies all row blocks by 1 to panels(first rows) panels. With |flipped| the highest bit of
  // each byte of A is inverted first, which makes int8 uint8 of 128 more; int16 cannot be flipped.
  void run(const RowBlocks& row_blocks, int64_t panels, bool flipped, Blocks& blocks) const {
    const Code* const code = code_[flipped][panels - 1];
    blocks.row_blocks = row_blocks.more;
    if (row_blocks.more > 0) code[row_blocks.rows](&blocks);
    blocks.row_blocks = row_blocks.count - row_blocks.more;
    if (blocks.row_blocks > 0) code[row_blocks.rows - 1](&blocks);
  }

 private:
  friend class DotMicrokernelSet;
  using Code = void (*)(Blocks* blocks);
  bool bytes_ = false, crosswise_ = false, requantizes_ = false;
  int64_t rows_ = 0;
  int64_t panels_[kMostRows] = {};
  Code code_[2][kMostPanels][kMostRows] = {};
};

}  // namespace pfrt::cpu
