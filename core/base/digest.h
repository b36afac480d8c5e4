// SPDX-License-Identifier: Apache-2.0
//
// Two kinds of numbers for bytes. A digest stands for what it is made of: nobody can find other
// bytes of the same one (BLAKE3). A checksum finds what happened by accident, faster, and tells
// nothing apart where somebody means harm (XXH3). An object belongs to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/blake3/blake3.h"

namespace pfrt {

// Of bytes that come in pieces.
class Digest {
 public:
  void add(const void* data, uint64_t bytes) { hash_.add(data, bytes); }
  // Told apart from what is added before and after it.
  void add(std::string_view text);
  std::string hex() const;  // of 256 bits, 64 lower-case digits

 private:
  Blake3 hash_;
};

// Of bytes that come in pieces: checksum() of all.
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
