// SPDX-License-Identifier: Apache-2.0
//
// BLAKE3's compression function for several inputs at a time, with the instructions of the
// processor. Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pfrt::blake3 {

inline constexpr size_t kBlockBytes = 64, kChunkBytes = 1024, kHashBytes = 32;
inline constexpr uint32_t kChunkStart = 1, kChunkEnd = 2, kParent = 4, kRoot = 8;
inline constexpr uint32_t kStart[8] = {0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A,
                                       0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19};

// |count| inputs of |blocks| blocks, |stride| bytes apart. The last block has |last_bytes| bytes,
// followed by zeros.
struct Inputs {
  const unsigned char* data;
  size_t stride, count, blocks;
  uint32_t last_bytes;
  uint64_t counter;  // of the first input
  bool counting;     // each input's counter is one more than the last's; else all are equal
  uint32_t flags, first, last;  // of all blocks, of the first, of the last
};

// A function for up to |count| inputs. It writes the 32 bytes of each to |out|, which may be where
// the inputs begin.
struct Lanes {
  size_t count;
  void (*compress)(const Inputs& inputs, unsigned char* out);
};

// The widest functions of the processor for up to |most| inputs, 4 at least.
const Lanes& lanes(size_t most);

}  // namespace pfrt::blake3
