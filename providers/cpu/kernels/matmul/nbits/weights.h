// SPDX-License-Identifier: Apache-2.0
//
// Constant weights of MatMulNBits in the panels of jit/nbits_microkernel.h, packed once by the
// host: as many bits as the model has them in. Immutable; thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "providers/cpu/jit/nbits_microkernel.h"
#include "providers/cpu/kernels/matmul/nbits/form.h"

namespace pfrt::cpu {

struct NBitsWeights {
  NBitsForm form;
  NBitsPanel panel;
  // The order of k where g_idx gives elements of k blocks in another order than theirs. |order| is
  // the stored k of each place of the panels, -1 for a place that has none; |scale_blocks| is the
  // block of scales of each block of places. Both are empty where k stays as stored.
  std::vector<int32_t> order, scale_blocks;

  int64_t panels() const { return (form.n + NBitsPanel::kColumns - 1) / NBitsPanel::kColumns; }
  int64_t places() const { return panel.blocks * panel.block; }  // of k, with padding
  uint64_t bytes() const { return static_cast<uint64_t>(panels() * panel.bytes()); }
  NBitsMicrokernel::Rows rows() const {
    const bool floats = !form.int8_rows || panel.zeros == NBitsPanel::Zeros::kFloat;
    return floats ? NBitsMicrokernel::Rows::kFloat : NBitsMicrokernel::Rows::kInt8;
  }
  const NBitsMicrokernel* microkernel() const {
    return NBitsMicrokernel::get(rows(), form.bits, panel.zeros);
  }
};

// nullopt where the weights cannot be packed: other blocks, not constant, or scattered by g_idx.
std::optional<NBitsWeights> nbits_weights(const SnapshotNode& node);

}  // namespace pfrt::cpu
