// SPDX-License-Identifier: Apache-2.0
//
// Describes nodes that need no step, because their outputs lie in the memory of their inputs or the
// other way round. Pure; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "providers/kit/node.h"

namespace pfrt::cpu {

struct InPlace {
  enum class Which : uint8_t {
    kSame,      // output 0 is input 0's bytes, under another shape
    kInInput,   // outputs are sub-buffers of input 0
    kInOutput,  // inputs are sub-buffers of output 0
  };
  Which which = Which::kSame;
  std::vector<uint64_t> offsets;  // bytes, by output (of absent ones too) or by input
};

// KernelRow::in_place of operators that never change a byte.
inline std::optional<InPlace> same_bytes(const SnapshotNode&) { return InPlace{}; }

}  // namespace pfrt::cpu
