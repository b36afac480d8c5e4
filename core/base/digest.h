// SPDX-License-Identifier: Apache-2.0
//
// Names and checksums of what things contain: XXH3. A Digest belongs to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace pfrt {

// Of bytes that come in pieces.
class Digest {
 public:
  Digest();
  ~Digest();
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;

  void add(const void* data, uint64_t bytes);
  // Told apart from what is added before and after it.
  void add(std::string_view text);
  std::string hex() const;  // of 128 bits, 32 lower-case digits
  uint64_t number() const;  // of 64 bits: checksum() of all

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Of 64 bits.
uint64_t checksum(const void* data, uint64_t bytes);
// Of 128 bits, as hex() of a Digest that got them.
std::string digest_of(const void* data, uint64_t bytes);

}  // namespace pfrt
