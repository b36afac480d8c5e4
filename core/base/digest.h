// SPDX-License-Identifier: Apache-2.0
//
// Two kinds of numbers for bytes. A digest identifies its bytes: nobody can find others with the
// same digest (BLAKE3). A checksum, which is faster, finds accidental changes, and proves nothing
// where somebody means harm (XXH3). An object belongs to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/blake3/blake3.h"

namespace pfrt {

// The digest of bytes that come in pieces.
class Digest {
 public:
  void add(const void* data, uint64_t bytes) { hash_.add(data, bytes); }
  // A text is told apart from what is added before and after it.
  void add(std::string_view text);
  std::string hex() const;  // of 256 bits, 64 lower-case digits

 private:
  Blake3 hash_;
};

// The checksum() of bytes that come in pieces.
class Checksum {
 public:
  Checksum();
  ~Checksum();
  Checksum(const Checksum&) = delete;
  Checksum& operator=(const Checksum&) = delete;

  void add(const void* data, uint64_t bytes);
  uint64_t value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

uint64_t checksum(const void* data, uint64_t bytes);

}  // namespace pfrt
