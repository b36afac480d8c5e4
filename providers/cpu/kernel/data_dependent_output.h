// SPDX-License-Identifier: Apache-2.0
//
// An output whose dimensions the data decides: memory comes from the run, unless the host knew the
// dimensions all the same, which then have to be right. Immutable; thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "providers/cpu/kernel/run.h"

namespace pfrt::cpu {

class Outlet {
 public:
  Outlet(const SnapshotNode& node, uint32_t output);

  bool wanted() const { return wanted_; }
  // Dimensions the host planned; null when it waits for the run.
  const std::vector<int64_t>* planned() const { return known_ ? &dims_ : nullptr; }
  // Memory for |dims|, in |out|: null for no elements or an unwanted output. Returns 0 or what
  // run.fail returned.
  pfrt_code open(const Run& run, std::span<const int64_t> dims, void** out) const;

 private:
  uint32_t output_;
  pfrt_dtype dtype_;
  bool wanted_, known_;
  std::vector<int64_t> dims_;
};

}  // namespace pfrt::cpu
