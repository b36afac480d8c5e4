// SPDX-License-Identifier: Apache-2.0
//
// The largest rank of a tensor, wherever a caller, plug-in or file gives or describes one.
#pragma once

#include <cstdint>

namespace pfrt {

inline constexpr uint32_t kMaxRank = 64;

}  // namespace pfrt
