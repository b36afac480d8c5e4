// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "core/base/status.h"

namespace pfrt {

// Tells why work should end before it is done, on the thread that does it. An empty function, or an
// OK status, lets it go on.
using Stop = std::function<Status()>;

// Whether the number with which a caller stops its work is not 0; null = nobody stops it. Any
// thread may write the number at any time. (std::atomic_ref takes no const here.)
inline bool raised(const uint32_t* flag) {
  return flag && __atomic_load_n(flag, __ATOMIC_RELAXED) != 0;
}

}  // namespace pfrt
