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

// Choices are fitted to EPYCs of Zen 3 with AVX2 and of Zen 4 with AVX-512, over the nodes of set
// C. Says whether they are those of AVX2, where the two differ.
inline bool fitted_to_avx2() { return isa() < Isa::kAvx512; }

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
