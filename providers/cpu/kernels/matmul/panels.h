// SPDX-License-Identifier: Apache-2.0
//
// Matmuls of float32 rows with constant columns in vectors (jit/panel_microkernel.h). The columns
// are packed to panels of 16 once, by the host; the rows are read in place. Columns of 16 bits
// (columns_16bit.h) are widened to such panels on the way, as much at a time as stays in the cache;
// the results have the same bits. Immutable; thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "providers/cpu/jit/panel_microkernel.h"
#include "providers/cpu/kernel/row.h"
#include "providers/cpu/kernels/matmul/constant_columns.h"
#include "providers/cpu/kernels/matmul/panel_source.h"

namespace pfrt::cpu {

// Packs |columns|, input 1 of the node, where a matmul of |m| rows gains by panels; with |any|, one
// of |m| rows or more.
std::optional<PackedInput> pack_panel_columns(const SnapshotNode& node, int64_t m, bool any,
                                              const Columns& columns);

// Bytes of |columns| packed to panels, and their packing; |source| has elements of |dtype|.
uint64_t panel_bytes(const Columns& columns);
void pack_panels(const void* source, pfrt_dtype dtype, const Columns& columns, float* to);

// Panels as a matmul reads them that takes any columns.
class PackedPanels : public PanelSource<float> {
 public:
  PackedPanels(const float* panels, int64_t k) : panels_(panels), k_(k) {}
  void pack(float* out, int64_t width, int64_t first, int64_t count, int64_t k0,
            int64_t kn) const override;

 private:
  const float* panels_;
  int64_t k_;
};

class PanelMatmul {
 public:
  // kBf16Dot: rows and panels hold pairs of bfloat16, k counts pairs, and sums are float32.
  enum class Panels { kFp32, kBf16, kFp16, kBf16Dot };
  // The division of the work, which results do not depend on.
  struct Blocking {
    int64_t task_rows = 128;
    int64_t task_cols = 0;    // 0: as many as give enough tasks
    bool by_columns = false;  // tasks of the same rows follow each other
  };
  // Multiplies |m| contiguous rows of k elements.
  PanelMatmul(int64_t m, const Columns& columns, Panels panels)
      : PanelMatmul(m, columns, panels, Blocking{}) {}
  PanelMatmul(int64_t m, const Columns& columns, Panels panels, const Blocking& blocking);
  Parameters parameters() const;
  // This matmul with other blockings, for Kernel::alternatives.
  std::vector<PanelMatmul> others(bool all) const;

  // The panels begin |bytes| into what is packed.
  PanelMatmul& at(int64_t bytes) {
    packed_at_ = bytes;
    return *this;
  }
  uint64_t scratch_bytes() const;
  uint64_t shared_bytes() const { return 0; }
  // Input 0 by input 1 to output 0, both dense.
  void run(const Run& run, const Finish& finish) const {
    this->run(run, run.input<float>(0), finish);
  }
  // Multiplies |rows| in place of input 0.
  void run(const Run& run, const float* rows, const Finish& finish) const;

 private:
  struct Task;
  struct Rows;
  struct Block;
  struct Ahead;
  int64_t task_cols(int64_t workers) const;
  int64_t row_tasks() const;
  int64_t col_tasks() const;
  const float* panels(const Run& run) const {
    return reinterpret_cast<const float*>(run.packed<char>() + packed_at_);
  }
  bool widens() const { return panels_ == Panels::kBf16 || panels_ == Panels::kFp16; }
  int64_t depth_at(int64_t k) const;
  void multiply(const Run& run, const Task& task, float* scratch) const;
  void multiply_by_passes(const Run& run, const Task& task, int64_t wide, float* scratch) const;
  void multiply(const Run& run, const Task& task, const Block& block) const;
  void multiply(const Run& run, const Task& task, const Block& block, int64_t k, const Rows& rows,
                const Ahead& ahead) const;
  void copy_sums(const Task& task, const Block& block, int64_t cols, float* out) const;
  Ahead next_panels(const Run& run, const Task& task, int64_t col, int64_t k) const;
  int64_t m_, n_, k_;
  Panels panels_;
  int64_t packed_at_ = 0;
  int64_t chain_, pass_;  // k of a sum, and of a call
  static constexpr size_t kMostChains = 12;
  std::array<int64_t, kMostChains> offsets_;  // of chains
  int64_t task_rows_ = 1, task_cols_ = 1;
  bool given_cols_ = false;  // a blocking gave task_cols_
  bool by_columns_;
  bool by_passes_ = false, copies_ = false;  // see multiply_by_passes
  const PanelMicrokernel* microkernel_;
};

}  // namespace pfrt::cpu
