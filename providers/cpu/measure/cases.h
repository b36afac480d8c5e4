// SPDX-License-Identifier: Apache-2.0
//
// A case of a measurement: a loop, and the data that it goes through.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "providers/cpu/isa/caches.h"
#include "providers/cpu/jit/peak_loops.h"

namespace pfrt::cpu {

struct MeasureCase {
  std::string_view name, unit;
  const PeakLoop* loop = nullptr;  // nullptr: not measured
  std::string absent;              // why it is not measured
  // Bytes that a thread goes through: alone, and when all threads run.
  int64_t alone_bytes = 0, shared_bytes = 0;
};

struct Machine {
  Isa isa = Isa::kGeneric;
  std::string no_tiles;  // why tiles cannot be used; empty = they can
  std::vector<Cache> caches;
  uint64_t memory = 0;  // bytes that are available; 0 = not known
  uint32_t threads = 1;
};

// The cases whose names begin with |only|.
std::vector<MeasureCase> measure_cases(const Machine& machine, const PeakLoops& loops,
                                       std::string_view only);

}  // namespace pfrt::cpu
