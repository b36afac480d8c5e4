// SPDX-License-Identifier: Apache-2.0
//
// Machine code for the innermost matmul of float32 kernels whose sums are short: rows of A, 16 k of
// each at a time, by panels of 16 columns of B. Fused multiply-adds in the order of k, from zero,
// make chains of 8 or 16 k; chains are added to a total one after another, beside the
// multiplications. PanelMicrokernel keeps sums of chains on the stack, which short chains would
// wait for. For AVX2 and AVX-512, whose bits are the same. Code for a number of rows is written
// where that many are first multiplied. Thread-safe.
#pragma once

#include <cstdint>

#include "providers/cpu/jit/lazy_code.h"
#include "providers/cpu/jit/panel_microkernel.h"

namespace pfrt::cpu {

class ShortChainMicrokernel {
 public:
  static constexpr int64_t kPanel = PanelMicrokernel::kPanel;
  static constexpr int64_t kChunk = 16;  // k, and from row to row of A
  static constexpr int64_t kMostRows = 12, kMostPanels = 2;

  // The one for chains of 8 or 16 k. nullptr where the machine, or PFRT_ISA, has no AVX2, or code
  // cannot be made executable.
  static const ShortChainMicrokernel* get(int64_t chain);

  // Strides count elements. A's element (r, k) is a[k / 16 * a_chunk + r * 16 + k % 16], B's of
  // panel p is b[p * b_panel + k * 16 + column], C's c[p * c_panel + r * 16 + column].
  struct Blocks {
    const float* a;
    int64_t a_chunk;
    int64_t chunks;  // 1 or more
    const float* b;
    int64_t b_panel;
    float* c;
    int64_t c_panel;
    int64_t adds;  // to what C holds; 0: C is overwritten
    // Memory that is fetched into the second-level cache meanwhile, until ahead_end at about, and
    // as much b_panel elements further; both null: nothing.
    const float *ahead, *ahead_end;
    int64_t row_blocks;  // see PanelMicrokernel
  };
  int64_t rows() const { return rows_; }
  int64_t panels() const { return panels_; }
  int64_t half_rows() const { return half_rows_; }
  // Multiplies row blocks of 1 to rows() rows by 1 to panels() panels. |a|, |c| and |ahead| move on
  // to what follows.
  void run(const PanelMicrokernel::RowBlocks& row_blocks, int64_t panels, Blocks& blocks) const {
    run_form(panels == 1 ? kOne : kTwo, row_blocks, blocks);
  }
  // Multiplies row blocks by the first 8 columns of one panel. The blocks have 1 to half_rows()
  // rows; that is 0 where a vector holds a whole panel. Other columns are neither read nor written.
  void run_half(const PanelMicrokernel::RowBlocks& row_blocks, Blocks& blocks) const {
    run_form(kHalf, row_blocks, blocks);
  }

 private:
  friend class ShortChainMicrokernelSet;
  enum Form : uint8_t { kOne, kTwo, kHalf, kForms };  // panels
  void run_form(Form form, const PanelMicrokernel::RowBlocks& row_blocks, Blocks& blocks) const {
    row_blocks.run(blocks, [&](int64_t rows) { run_code(form, rows, blocks); });
  }
  void run_code(Form form, int64_t rows, Blocks& blocks) const {
    if (const auto code = code_[form][rows - 1].ready()) [[likely]]
      code(&blocks);
    else
      run_first(form, rows, blocks);
  }
  void run_first(Form form, int64_t rows, Blocks& blocks) const;

  bool wide_ = false;
  int64_t chain_ = 0, rows_ = 0, panels_ = 0, half_rows_ = 0;
  LazyCode<Blocks> code_[kForms][kMostRows];
};

}  // namespace pfrt::cpu
