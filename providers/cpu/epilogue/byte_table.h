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
  // By the upper four bits of x: results of 16 neighbours, but those of the 16 before them within
  // the same half are taken off (exclusive or); the results themselves where that is what vectors_
  // takes.
  alignas(16) Results differences_;
  int64_t (*vectors_)(const Results& differences, const uint8_t* x, int64_t n, uint8_t* y);
};

}  // namespace pfrt::cpu
