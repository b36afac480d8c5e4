// SPDX-License-Identifier: Apache-2.0
//
// The contents of a node MatMulNBits: sizes, types, and how its weights are stored. Row n of the
// weights is stored in blocks of a few bits an element: w = (stored - zero point) * scale.
// Immutable; thread-safe.
#pragma once

#include <cstdint>

#include "providers/cpu/kernel/row.h"

namespace pfrt::cpu {

struct NBitsForm {
  // Inputs.
  static constexpr uint32_t kA = 0, kB = 1, kScales = 2, kZeros = 3, kGroups = 4, kBias = 5;

  int64_t n = 0, k = 0, bits = 4, block = 32, blocks = 0;
  pfrt_dtype scale_dtype = PFRT_DTYPE_UNSET, zero_dtype = PFRT_DTYPE_UNSET;  // zero UNSET: half
  bool has_groups = false, has_bias = false;  // groups: input 4 names the block of each column
  // The model, or the session, allows the rows of A to be rounded to int8, block by block.
  bool int8_rows = false;

  int64_t block_bytes() const { return block * bits / 8; }
  // Bytes of a row's zero points where those have |bits| too.
  int64_t zero_bytes() const { return (blocks * bits + 7) / 8; }
  // Rows of A.
  Result<int64_t> rows(const SnapshotNode& node) const;
};

// Reads all but A and the output.
Result<NBitsForm> read_nbits_form(const SnapshotNode& node);

// Element |i| of a run of |bits|, the lowest bits first.
inline uint32_t nbits_element(const uint8_t* data, int64_t bits, int64_t i) {
  const int64_t bit = i * bits;
  return static_cast<uint32_t>(data[bit / 8]) >> (bit % 8) & ((1u << bits) - 1);
}

}  // namespace pfrt::cpu
