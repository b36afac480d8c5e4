// SPDX-License-Identifier: Apache-2.0
//
// A LayerNormalization or RMSNormalization of the last dimension in the step that makes its input:
// a row is normalised when the last of its elements is final. Immutable; thread-safe.
#pragma once

#include <string>

#include "providers/kit/node.h"

namespace pfrt::cpu {

// Whether the node is of those operators at all.
bool is_row_norm(const SnapshotNode& node);
// Why a normalisation does not run in the step before it; empty when it does.
std::string refuse_row_norm(const SnapshotNode& norm);

class RowNorm {
 public:
  // Buffers of the program; |bias| PFRT_NO_INDEX for none. |y| may be |x|. |counters| has
  // counter_bytes(), and begins as zeros.
  struct Buffers {
    uint32_t x, scale, bias, y, counters;
  };
  // Takes |norm| with all dimensions known.
  explicit RowNorm(const SnapshotNode& norm);
  void set_buffers(const Buffers& buffers) { at_ = buffers; }
  const Buffers& buffers() const { return at_; }
  uint64_t counter_bytes() const { return static_cast<uint64_t>(rows_) * sizeof(uint32_t); }
  double flops() const;

  void start(void* const* buffers) const;
  // Elements [begin, end) of x are final.
  void apply(void* const* buffers, int64_t begin, int64_t end) const;

 private:
  int64_t rows_, length_;
  double epsilon_;
  bool centered_, avx2_;
  Buffers at_{};
};

}  // namespace pfrt::cpu
