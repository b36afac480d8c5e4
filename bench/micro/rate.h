// SPDX-License-Identifier: Apache-2.0
//
// The rate of the machine just now, measured in a few milliseconds. For programs that measure; on
// one thread.
#pragma once

namespace micro {

struct Rate {
  double gflops = 0;  // multiply-adds of float32; 0: cannot be measured
  double gbs = 0;     // read from the first-level cache

  static Rate now();
};

}  // namespace micro
