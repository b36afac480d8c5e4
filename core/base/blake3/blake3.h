// SPDX-License-Identifier: Apache-2.0
//
// The cryptographic hash BLAKE3, as its specification of 2020 has it ("BLAKE3: one function, fast
// everywhere", by O'Connor, Aumasson, Neves and Wilcox-O'Hearn), without key. It is our own code
// since Debian 12 has no library of it in C. Nobody can make other bytes of a given hash, or two
// inputs of one. An object belongs to one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/base/blake3/lanes.h"

namespace pfrt {

// Of bytes that come in pieces.
class Blake3 {
 public:
  using Hash = std::array<unsigned char, blake3::kHashBytes>;

  // |most_lanes|: how many inputs are compressed at a time at most, for tests.
  explicit Blake3(size_t most_lanes = SIZE_MAX) : widest_(blake3::lanes(most_lanes)) {}
  void add(const void* data, uint64_t bytes);
  Hash hash() const;  // of what was added so far

 private:
  static constexpr size_t kMostChunks = 256;  // that are compressed together: a power of two
  static constexpr size_t kMostLevels = 54;   // of a tree over 2^64 bytes

  void compress(blake3::Inputs inputs, unsigned char* out) const;
  // The hash of the buffer's bytes as a chunk, which is the root where |flags| say so.
  Hash chunk(uint32_t flags) const;
  Hash parent(const unsigned char* children, uint32_t flags) const;
  void add_chunks(const unsigned char* data, size_t count);
  // |hash| is of the next |chunks| chunks, a power of two.
  void push(const unsigned char* hash, uint64_t chunks);

  alignas(64) std::array<unsigned char, blake3::kChunkBytes> buffer_;
  const blake3::Lanes& widest_;
  uint64_t chunks_ = 0;  // of which the hashes are on the stack
  size_t held_ = 0, levels_ = 0;
  // Hashes of whole subtrees, larger ones first.
  std::array<unsigned char, (kMostLevels + 1) * blake3::kHashBytes> stack_;
};

}  // namespace pfrt
