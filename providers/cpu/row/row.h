// SPDX-License-Identifier: Apache-2.0
//
// A row of the kernel tables. A family is a table of rows, best first; the first row that neither
// its types nor its refuse function turn away makes the step. A row is made anew for each input
// signature, when all dimensions are known.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "providers/cpu/row/kernel.h"
#include "providers/cpu/row/types.h"
#include "providers/kit/node.h"

namespace pfrt::cpu {

// What a row makes of a node's attributes alone, once a compiled region: a packed model.
using Prepared = std::shared_ptr<const void>;

// Which of input 0 and output 0 lie in blocks of 16 channels (README.md, "Blocks of channels").
struct Blocked {
  bool input = false, output = false;
};

// A constant input in a row's own layout, made once and shared between sessions.
struct PackedInput {
  uint32_t input = 0;
  std::string recipe;  // names layout and dimensions completely
  uint64_t bytes = 0;
  std::function<void(const void* source, void* out)> pack;
};

struct KernelRow {
  std::string_view domain, op;  // canonical form
  Types types;                  // of input |typed_input|, or of output 0 when there are no inputs
  std::string_view name;        // "conv_direct_ref"
  std::string_view isa;         // lowest PFRT_ISA word it needs: generic, avx2, avx512, ...
  // Empty when this row can run the node; the dimensions may still be symbolic (negative) or
  // unknown. May be null.
  std::string (*refuse)(const SnapshotNode& node);
  // All input dimensions are known; output dimensions too unless the operator is data-dependent.
  Result<Kernel> (*make)(const SnapshotNode& node);
  uint32_t typed_input = 0;
  // With them, |make| is null: what takes long is not done again for each signature. A fault of
  // prepare refuses the node when the model is loaded.
  Result<Prepared> (*prepare)(const SnapshotNode& node) = nullptr;
  Result<Kernel> (*make_with)(const SnapshotNode& node, const Prepared& prepared) = nullptr;
  bool packed = false;  // takes and makes kPacked types as they lie in memory
  // Calls Run::finished where output 0 is of kShortFloats; its dimensions are known before the run.
  bool takes_tail = false;
  // A form that gives the pooling of output 0 instead; null without one. Empty when it can. Where
  // |refuse_blocked| takes input 0 and output 0 in blocks, it does so of the pooling's output.
  std::string (*refuse_pool)(const SnapshotNode& node, const SnapshotNode& pool) = nullptr;
  Result<Kernel> (*make_pooled)(const SnapshotNode& node, const SnapshotNode& pool,
                                Blocked sides) = nullptr;
  // A form for images in blocks of channels; null without one. |refuse_blocked| is empty when input
  // 0 and output 0, of one type of kShortFloats, may lie so.
  std::string (*refuse_blocked)(const SnapshotNode& node, Blocked sides) = nullptr;
  Result<Kernel> (*make_blocked)(const SnapshotNode& node, Blocked sides) = nullptr;
  // A form for an image whose channels are yet to be shuffled: channel c of input 0 is the buffer's
  // c % groups * (channels / groups) + c / groups. Null without one.
  Result<Kernel> (*make_shuffled)(const SnapshotNode& node, int64_t groups) = nullptr;
  // Called once a compiled region, for nodes that refuse did not turn away. May be null.
  std::optional<PackedInput> (*pack)(const SnapshotNode& node) = nullptr;
  // Takes the place of |make| for nodes of which something was packed; null without.
  Result<Kernel> (*make_packed)(const SnapshotNode& node, const PackedInput& packed) = nullptr;
};

constexpr KernelRow with_tail(KernelRow row) {
  row.takes_tail = true;
  return row;
}

constexpr KernelRow with_blocks(KernelRow row, decltype(KernelRow::refuse_blocked) refuse,
                                decltype(KernelRow::make_blocked) make) {
  row.refuse_blocked = refuse;
  row.make_blocked = make;
  return row;
}

constexpr KernelRow with_shuffle(KernelRow row, decltype(KernelRow::make_shuffled) make) {
  row.make_shuffled = make;
  return row;
}

constexpr KernelRow with_pool(KernelRow row, decltype(KernelRow::refuse_pool) refuse,
                              decltype(KernelRow::make_pooled) make) {
  row.refuse_pool = refuse;
  row.make_pooled = make;
  return row;
}

}  // namespace pfrt::cpu
