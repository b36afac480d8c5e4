// SPDX-License-Identifier: Apache-2.0
//
// The cryptographic hash BLAKE3 without key, as specified in "BLAKE3: one function, fast
// everywhere" (O'Connor, Aumasson, Neves and Wilcox-O'Hearn, 2020). The code is this project's
// because Debian 12 has no C library of it. Nobody can make other bytes with a given hash, or two
// inputs with one hash. An object belongs to one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/base/blake3/lanes.h"

namespace pfrt {

// The hash of bytes that come in pieces.
class Blake3 {
 public:
  using Hash = std::array<unsigned char, blake3::kHashBytes>;

  // |most_lanes| limits the inputs compressed at a time, for tests.
  explicit Blake3(size_t most_lanes = SIZE_MAX) : widest_(blake3::lanes(most_lanes)) {}
  void add(const void* data, uint64_t bytes);
  Hash hash() const;  // of what was added so far

 private:
  static constexpr size_t kMostChunks = 256;  // compressed together; a power of two
  static constexpr size_t kMostLevels = 54;   // of a tree over 2^64 bytes

  void compress(blake3::Inputs inputs, unsigned char* out) const;
  // The hash of the buffer's bytes as a chunk, which is the root where |flags| say so.
  Hash chunk(uint32_t flags) const;
  Hash parent(const unsigned char* children, uint32_t flags) const;
  void add_chunks(const unsigned char* data, size_t count);
  // |hash| is that of the next |chunks| chunks, a power of two.
  void push(const unsigned char* hash, uint64_t chunks);

  alignas(64) std::array<unsigned char, blake3::kChunkBytes> buffer_;
  const blake3::Lanes& widest_;
  uint64_t chunks_ = 0;  // chunks with hashes on the stack
  size_t held_ = 0, levels_ = 0;
  // Hashes of whole subtrees, larger ones first.
  std::array<unsigned char, (kMostLevels + 1) * blake3::kHashBytes> stack_;
};

}  // namespace pfrt
