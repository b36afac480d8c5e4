// SPDX-License-Identifier: Apache-2.0
//
// The machine's peaks: arithmetic on random operands and reading from each level of memory, in
// generated code, on one thread and on all, each pinned to a processor. Every case takes turns with
// all others in several rounds over the whole time, since a processor's clock changes for seconds.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace pfrt::cpu {

struct MeasureRequest {
  uint32_t threads = 1;  // rates are for one thread and for so many
  double seconds = 10;   // about; 0 = measure nothing, and tell the names
  std::string only;      // prefix of the names to measure; empty = everything
};

struct Rate {
  // The words of |name| after a comma or the last blank say where operands lie: "read L2".
  std::string_view name, unit;
  std::string note;      // instructions and data; where nothing was measured, the reason
  uint32_t threads = 0;  // 0 = not measured
  // Median and best of several short bursts, in |unit|, of all threads together.
  double median = 0, best = 0;
};

// Measures with threads of its own, which are gone afterwards: each name once for each number of
// threads, or once with none. |at| hears the progress, which grows to 1; what it fails with is what
// this fails with.
Result<std::vector<Rate>> measure(const MeasureRequest& request,
                                  const std::function<Status(double)>& at);

}  // namespace pfrt::cpu
