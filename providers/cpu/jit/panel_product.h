// SPDX-License-Identifier: Apache-2.0
//
// Machine code for the innermost product of float32 kernels that keep one factor packed: rows of A,
// read where they lie, by panels of 16 columns of B, k by k. Convolutions read a window's pixels
// through it, matrix products their rows. Fused multiply-adds in the order of k, from zero, a chain
// of some chunks at a time; the sum of the chains is added to C at the end, so a call is one
// rounding there. For AVX2 and AVX-512. Immutable; thread-safe.
#pragma once

#include <cstdint>

namespace pfrt::cpu {

class PanelProduct {
 public:
  static constexpr int64_t kPanel = 16;  // columns
  static constexpr int64_t kMostRows = 12, kMostPanels = 2;
  static constexpr int64_t kMostStreamRows = 6, kMostStreams = 4;
  static constexpr int64_t kAheadLine = 16, kAheadDepth = 8;

  // nullptr where the machine, or PFRT_ISA, has no AVX2, or code cannot be made executable.
  static const PanelProduct* get();

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
    float* c;
    int64_t c_row, c_panel;
    // What the sums are added to, 16 a panel, rows |start_row| apart; null: to what C holds.
    const float* start;
    int64_t start_row;
    // Fetched into the second-level cache meanwhile: kAheadLine elements for every kAheadDepth of
    // k in a chunk; null: nothing.
    const float* ahead;
  };
  // For 1 to rows() rows, 1 to panels(rows) panels, and chunks and depth of 1 or more.
  void run(int64_t rows, int64_t panels, const Blocks& blocks) const {
    code_[panels - 1][rows - 1](&blocks);
  }
  // streams(rows) panels |b_panel| apart at once, for 1 to stream_rows() rows. Few rows take as
  // long as their panels take to read, and more is on its way from memory where that is in several
  // places; a single panel is fetched ahead of its use. The bits are those of run.
  void run_streams(int64_t rows, const Blocks& blocks) const { streams_code_[rows - 1](&blocks); }
  int64_t streams(int64_t rows) const { return streams_[rows - 1]; }
  int64_t stream_rows() const { return stream_rows_; }
  // The first 8 columns of one panel, for 1 to half_rows() rows: no others are read or written, nor
  // of |start|.
  void run_half(int64_t rows, const Blocks& blocks) const { half_code_[rows - 1](&blocks); }
  // 0 where a vector is a panel, and half of one would take as long.
  int64_t half_rows() const { return half_rows_; }
  int64_t rows() const { return rows_; }
  int64_t panels() const { return panels(rows_); }
  // Few rows take two where more take one: memory is read ahead of both.
  int64_t panels(int64_t rows) const { return rows <= rows_of_two_ ? 2 : 1; }

  // Rows in parts as alike as can be, of |most| or fewer: the first |more| have one row more than
  // |rows|.
  struct Parts {
    int64_t whole = 0, count = 0, rows = 0, more = 0;
  };
  Parts parts(int64_t n) const { return parts(n, rows_); }
  static Parts parts(int64_t n, int64_t most) {
    const int64_t count = (n + most - 1) / most;
    return {n, count, n / count, n % count};
  }

 private:
  friend class PanelProductSet;
  using Code = void (*)(const Blocks* blocks);
  int64_t rows_ = 0, rows_of_two_ = 0, half_rows_ = 0, stream_rows_ = 0;
  int64_t streams_[kMostStreamRows] = {};
  Code code_[kMostPanels][kMostRows] = {}, half_code_[kMostRows] = {};
  Code streams_code_[kMostStreamRows] = {};
};

}  // namespace pfrt::cpu
