// SPDX-License-Identifier: Apache-2.0
//
// A compiled region: its own copy of the nodes, divided into fusion groups, with the code of the
// generated loops. Knows no dimensions; programs are made from it for each input signature.
// Immutable after compile, then thread-safe.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "core/base/status.h"
#include "providers/cpu/compile/fusion_groups.h"
#include "providers/cpu/jit/elementwise_loop.h"
#include "providers/cpu/kernel/row.h"
#include "providers/kit/snapshot_copy.h"

namespace pfrt::cpu {

// The place of a value that no step of the region needs to make room for.
struct Home {
  pfrt_buffer_kind kind = PFRT_BUFFER_TEMP;
  uint32_t index = 0;
};

// A constant that the host shall pack for a node.
struct Packed {
  PackedInput input;
  std::vector<uint32_t> sources;   // values of the snapshot
  uint32_t index = 0;              // among the executable's constants
  const KernelRow* row = nullptr;  // that packed it
};

class Executable {
 public:
  // On an error |node| is the snapshot's node at fault, or PFRT_NO_INDEX.
  static Result<std::unique_ptr<Executable>> compile(const pfrt_snapshot& snapshot,
                                                     const pfrt_region& region, uint32_t& node);

  const SnapshotCopy& snapshot() const { return *snapshot_; }
  const std::vector<FusionGroup>& fusion_groups() const { return fusion_groups_; }
  const LoopCode& code(size_t group) const { return code_[group]; }
  // The region's outputs, as values of the snapshot.
  const std::vector<uint32_t>& outputs() const { return outputs_; }
  const Home& home(uint32_t value) const { return homes_[value]; }
  // The result of KernelRow::prepare for a node of the snapshot; null where its row has no such
  // function.
  Prepared prepared(uint32_t node) const {
    const auto found = prepared_.find(node);
    return found == prepared_.end() ? nullptr : found->second;
  }
  // nullptr where the row of the node has nothing to pack.
  const Packed* packed(uint32_t node) const;
  const std::vector<pfrt_packed_constant>& constants() const { return constants_; }
  Precision precision(uint32_t node) const;
  // Whether programs may measure which division of the work is the fastest.
  bool tunes() const { return tunes_; }

 private:
  Executable() = default;
  void add_constant(const SnapshotNode& node, const KernelRow& row);
  void drop_unused_outputs(const std::vector<uint32_t>& nodes);
  void settle_values(const pfrt_region& region);
  void generate();

  std::unique_ptr<SnapshotCopy> snapshot_;
  std::vector<FusionGroup> fusion_groups_;
  std::vector<LoopCode> code_;
  std::vector<uint32_t> outputs_;
  std::vector<Home> homes_;
  std::unordered_map<uint32_t, Prepared> prepared_;
  std::unordered_map<uint32_t, Packed> packed_;
  std::vector<pfrt_packed_constant> constants_;
  bool tunes_ = false;
  Precision precision_ = Precision::kFloat32;
  std::unordered_map<uint32_t, Precision> own_precision_;  // of the nodes that have another
};

}  // namespace pfrt::cpu
