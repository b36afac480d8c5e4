// SPDX-License-Identifier: Apache-2.0
//
// Divides what a row cannot do from what it leaves to a faster row. KernelRow::refuse, and choices
// among kernels within a row, ask pays() wherever they go by speed alone, so that a check can make
// every row that is able to do a node, and compare them (bench/micro/choices.cc). Estimates are
// fitted to what such checks measured, by kinds of shapes, for each kind of machine.
#pragma once

#include <atomic>

#include "providers/cpu/isa/isa.h"

namespace pfrt::cpu {

inline std::atomic<bool> every_row_pays{false};

// Returns |estimate|, or true while an EveryRowPays lives.
inline bool pays(bool estimate) {
  return estimate || every_row_pays.load(std::memory_order_relaxed);
}

// Says whether choices are those fitted to machines with AVX2 alone: to an EPYC of Zen 3, over the
// nodes of set C. Those of machines with AVX-512 are older, and from fewer shapes.
inline bool fitted_to_avx2() {
  const Isa usable = isa();
  return usable >= Isa::kAvx2 && usable < Isa::kAvx512;
}

// While it lives no row of this process refuses a node for its speed. For benches and tests: one at
// a time, and none while another thread chooses rows.
class EveryRowPays {
 public:
  EveryRowPays() { every_row_pays = true; }
  ~EveryRowPays() { every_row_pays = false; }
  EveryRowPays(const EveryRowPays&) = delete;
  EveryRowPays& operator=(const EveryRowPays&) = delete;
};

}  // namespace pfrt::cpu
