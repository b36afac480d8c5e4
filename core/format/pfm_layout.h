// SPDX-License-Identifier: Apache-2.0
//
// Constants of the .pfm layout, shared by reader and writer.
#pragma once

#include <cstdint>

namespace pfrt::pfm {

inline constexpr char kMagic[4] = {'P', 'F', 'M', '\0'};
inline constexpr uint32_t kVersion = 1;
inline constexpr uint64_t kHeaderBytes = 8;  // magic and version; the size-prefixed buffer follows
inline constexpr uint64_t kAlignment = 64;   // of payload sections
inline constexpr int kMaxDepth = 64;         // of bodies in bodies

}  // namespace pfrt::pfm
