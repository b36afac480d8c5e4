// SPDX-License-Identifier: Apache-2.0
//
// The .pfm layout, shared by reader and writer: a Header, the size-prefixed buffer, and sections at
// multiples of 64 bytes with fewer than 64 zeros between them; nothing follows the last. Every byte
// is known or checked: the header's checksum covers the header and the buffer, and the buffer has
// those of the sections. In files of version 1 the header has only kMagic and the version, and the
// buffer has no checksum.
#pragma once

#include <cstdint>

namespace pfrt::pfm {

inline constexpr char kMagic[4] = {'P', 'F', 'M', '\0'};
inline constexpr uint32_t kVersion = 2;
inline constexpr uint64_t kAlignment = 64;       // of payload sections
inline constexpr int kMaxDepth = 64;             // bodies nested in bodies
inline constexpr uint32_t kRemade = UINT32_MAX;  // Tensor.file of bytes that are made again
inline constexpr uint32_t kNumber = UINT32_MAX;  // Dim.symbol of a number

struct Header {
  char magic[4];
  uint32_t version;
  uint64_t file_bytes;
  uint64_t checksum;  // XXH3-64 of the bytes before it and of the buffer with its size
};
static_assert(sizeof(Header) == 24);
inline constexpr uint64_t kVersion1Bytes = 8;

}  // namespace pfrt::pfm
