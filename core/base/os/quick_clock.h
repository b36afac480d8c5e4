// SPDX-License-Identifier: Apache-2.0
//
// The monotonic clock for those who read it several times within microseconds: the processor's
// counter, where the system counts by it too, which takes a third of the time and does not wait for
// what is under way. Some 100 ns from os::monotonic_ns at most, and by as much it may step back
// where the two are compared, ten times a second. Thread-safe.
#pragma once

#include <cstdint>

namespace pfrt::os {

uint64_t quick_ns();

}  // namespace pfrt::os
