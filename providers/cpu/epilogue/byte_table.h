// SPDX-License-Identifier: Apache-2.0
//
// A function of bytes as a table of its 256 results, looked up in vectors. Immutable; thread-safe.
#pragma once

#include <array>
#include <cstdint>

#include "providers/cpu/isa/isa.h"

namespace pfrt::cpu {

class ByteTable {
 public:
  using Results = std::array<uint8_t, 256>;
  // |isa| is avx2 or more.
  ByteTable(const Results& results, Isa isa);

  // y[i] = results[x[i]]; |y| may be |x|.
  void run(const uint8_t* x, int64_t n, uint8_t* y) const;

 private:
  Results results_;
  // Results by the upper four bits of x. Each row has the exclusive or of 16 neighbouring results
  // with the 16 before them in the same half, or the results themselves where vectors_ takes those.
  alignas(16) Results differences_;
  int64_t (*vectors_)(const Results& differences, const uint8_t* x, int64_t n, uint8_t* y);
};

}  // namespace pfrt::cpu
