// SPDX-License-Identifier: Apache-2.0
//
// Machine code for the innermost matmul of float32 kernels that keep one factor packed: rows of A,
// read where they lie, by panels of 16 columns of B, k by k. Convolutions read a window's pixels
// through it, matrix products their rows. Fused multiply-adds in the order of k, from zero, a chain
// of some chunks at a time; the sum of the chains is added to C at the end, so a call is one
// rounding there. For AVX2 and AVX-512. There are forms for pairs of bfloat16, too. Code for a
// number of rows is written where that many are first multiplied. Thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>

#include "providers/cpu/jit/lazy_code.h"

namespace pfrt::cpu {

class PanelMicrokernel {
 public:
  static constexpr int64_t kPanel = 16;  // columns
  static constexpr int64_t kMostRows = 12, kMostPanels = 2;
  static constexpr int64_t kMostStreamRows = 6, kMostStreams = 4;
  static constexpr int64_t kAheadLine = 16, kAheadDepth = 8;

  // nullptr where the machine, or PFRT_ISA, has no AVX2, or code cannot be made executable.
  static const PanelMicrokernel* get();
  // Returns the microkernel for pairs of bfloat16, with sums of float32. The product in the high
  // half of a pair is added first, and each sum is rounded. Numbers below the normal range count as
  // 0. nullptr without AVX512-BF16.
  static const PanelMicrokernel* get_bf16_dot();

  // Strides and offsets count elements. A's element (r, chunk c, k) is a[offsets[c] + r * a_row +
  // k], B's of panel p is b[p * b_panel + (c * depth + k) * 16 + column], C's c[r * c_row + p *
  // c_panel + column].
  struct Blocks {
    const float* a;
    const int64_t* offsets;
    int64_t a_row;
    int64_t chunks, depth;
    int64_t chain;  // chunks; |chunks| is a multiple of it
    const float* b;
    int64_t b_panel;
    int64_t b_row;  // of run_plain: the element is b[k * b_row + column]
    float* c;
    int64_t c_row, c_panel;
    // The sums are added to these, 16 a panel, rows |start_row| apart; null: to what C holds.
    const float* start;
    int64_t start_row;
    // Memory that is fetched into the second-level cache meanwhile: kAheadLine elements a panel for
    // every kAheadDepth of k in a chunk, until ahead_end at about; both null: nothing.
    const float *ahead, *ahead_end;
    int64_t row_blocks;  // the number of blocks, whose rows follow each other; 0 counts as 1
  };
  // Multiplies 1 to stream_rows() rows by streams(rows) panels at once, |b_panel| apart. A few rows
  // take as long as their panels take to read; reading in several places at once keeps more of
  // memory on its way. A single panel is fetched ahead of its use. The bits are those of run. Not
  // for pairs.
  void run_streams(int64_t rows, Blocks& blocks) const { run_code(kStreamed, rows, blocks); }
  int64_t streams(int64_t rows) const { return streams_[rows - 1]; }
  int64_t stream_rows() const { return stream_rows_; }
  // 0 where a vector holds a whole panel, so that half a panel would take as long.
  int64_t half_rows() const { return half_rows_; }
  int64_t rows() const { return rows_; }
  int64_t panels() const { return panels(rows_); }
  // Multiplies 1 to 16 rows by 1 to packed_panels() panels, where A is packed as a panel too:
  // element (r, chunk c, k) is a[offsets[c] + r + k * 16], and |a_row| is 1. The bits are those of
  // run. Not for pairs.
  void run_packed(int64_t rows, int64_t panels, Blocks& blocks) const {
    run_form(panels == 1 ? kPacked : kTwoPacked, row_blocks(rows, packed_rows_), blocks);
  }
  int64_t packed_panels() const { return panels(packed_rows_); }
  // Few rows take two panels, more rows one: with two, the processor reads ahead of both.
  int64_t panels(int64_t rows) const { return rows <= rows_of_two_ ? 2 : 1; }

  // Rows, 1 or more, in blocks of about equal size: the first |more| blocks have one row more than
  // |rows|.
  struct RowBlocks {
    int64_t whole = 0, count = 0, rows = 0, more = 0;

    int64_t first() const { return rows + (more > 0); }  // rows of the first
    RowBlocks rest() const { return {whole, count - 1, rows, std::max<int64_t>(more - 1, 0)}; }
    // Share |i| of |n| shares of about equal size.
    RowBlocks share(int64_t i, int64_t n) const {
      if (n == 1) return *this;
      const int64_t begin = i * count / n, end = (i + 1) * count / n;
      return {whole, end - begin, rows, std::clamp<int64_t>(more - begin, 0, end - begin)};
    }
    // fn(rows) for the blocks of each size, whose number is then in |args|.
    template <typename Args, typename Fn>
    void run(Args& args, Fn&& fn) const {
      args.row_blocks = more;
      if (more > 0) fn(rows + 1);
      args.row_blocks = count - more;
      if (args.row_blocks > 0) fn(rows);
    }
  };
  RowBlocks row_blocks(int64_t n) const { return row_blocks(n, rows_); }
  static RowBlocks row_blocks(int64_t n, int64_t most) {
    if (n <= most) return {n, 1, n, 0};  // divisions take as long as small products
    const int64_t count = (n + most - 1) / most;
    return {n, count, n / count, n % count};
  }
  // Multiplies all row blocks by 1 to panels(rows) panels; chunks and depth are 1 or more. |a|,
  // |c|, |start| and |ahead| move on to what follows.
  void run(const RowBlocks& row_blocks, int64_t panels, Blocks& blocks) const {
    run_form(panels == 1 ? kOne : kTwo, row_blocks, blocks);
  }
  // Multiplies all row blocks, of 1 to half_rows() rows, by the first 8 columns of one panel. Other
  // columns are neither read nor written.
  void run_half(const RowBlocks& row_blocks, Blocks& blocks) const {
    run_form(kHalf, row_blocks, blocks);
  }
  // Whether 16 columns of |depth| lines, |row| elements apart, stay in the first-level cache while
  // rows are multiplied by them: lines a multiple of a power of two apart share its sets.
  static bool stays_near(int64_t row, int64_t depth) {
    constexpr int64_t kWay = 4096, kLine = 64, kWays = 4;
    const int64_t bytes = row * static_cast<int64_t>(sizeof(float));
    return depth <= kWays * kWay / std::clamp(bytes & -bytes, kLine, kWay);
  }
  // Whether there is run_plain.
  bool takes_plain() const { return half_rows_ > 0; }
  // Multiplies row blocks of up to rows() rows by 16 columns of a B that is not packed, or of up to
  // half_rows() rows by 8 columns: one chunk, A's first row at |a|. The bits are those of run.
  void run_plain(int64_t rows, bool half, Blocks& blocks) const;

 private:
  friend class PanelMicrokernelSet;
  // Forms of the code: a panel, two, half of one, several streams; a panel and two for packed rows;
  // a panel's columns and half as many where they are not packed.
  enum Form : uint8_t {
    kOne,
    kTwo,
    kHalf,
    kStreamed,
    kPacked,
    kTwoPacked,
    kUnpacked,
    kUnpackedHalf,
    kForms
  };
  static constexpr int64_t kMostPackedRows = 8;

  void run_form(Form form, const RowBlocks& row_blocks, Blocks& blocks) const {
    row_blocks.run(blocks, [&](int64_t rows) { run_code(form, rows, blocks); });
  }
  void run_code(Form form, int64_t rows, Blocks& blocks) const {
    if (const auto code = code_[form][rows - 1].ready()) [[likely]]
      code(&blocks);
    else
      run_first(form, rows, blocks);
  }
  void run_first(Form form, int64_t rows, Blocks& blocks) const;

  bool wide_ = false, pairs_ = false;  // pairs of bfloat16
  int64_t rows_ = 0, rows_of_two_ = 0, half_rows_ = 0, stream_rows_ = 0, packed_rows_ = 0;
  int64_t streams_[kMostStreamRows] = {};
  LazyCode<Blocks> code_[kForms][kMostRows];
};

}  // namespace pfrt::cpu
