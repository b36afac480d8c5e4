// SPDX-License-Identifier: Apache-2.0
//
// Machine code that does one thing as fast as the processor can: multiply and add, or read memory.
// Results are thrown away. Operands are read from memory in each block, since registers whose
// contents do not change make arithmetic look faster than it is. Immutable; thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

#include "core/base/status.h"
#include "providers/cpu/isa/isa.h"

namespace pfrt::cpu {

// The numbers that the data must be: arithmetic on other bits may take another time.
enum class PeakData : uint8_t { kFloat32, kBfloat16, kInt8 };

struct PeakLoop {
  std::string_view instructions;
  PeakData data = PeakData::kFloat32;
  int64_t block_bytes = 0;  // read by a block
  int64_t work = 0;         // of a block: operations, or bytes
  // Goes through |blocks| blocks at |data| one after another, |passes| times; neither is 0.
  void (*run)(const void* data, int64_t blocks, int64_t passes) = nullptr;
};

class PeakLoops {
 public:
  enum Kind { kFma, kBf16Dot, kInt8Dot, kRead, kBf16Tiles, kInt8Tiles, kTileLoad, kKinds };

  virtual ~PeakLoops() = default;
  // Makes the loops that |isa| has; with |tiles|, which takes amx_usable(), also those on tiles.
  static Result<std::unique_ptr<PeakLoops>> make(Isa isa, bool tiles);
  // nullptr where |isa| has none.
  const PeakLoop* find(Kind kind) const { return loops_[kind].run ? &loops_[kind] : nullptr; }

 protected:
  std::array<PeakLoop, kKinds> loops_;
};

}  // namespace pfrt::cpu
