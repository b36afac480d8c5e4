// SPDX-License-Identifier: Apache-2.0
//
// Names for what things contain: XXH3 of 128 bits. A Digest belongs to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace pfrt {

class Digest {
 public:
  Digest();
  ~Digest();
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;

  void add(const void* data, uint64_t bytes);
  // Told apart from what is added before and after it.
  void add(std::string_view text);
  std::string hex() const;  // 32 lower-case digits
  uint64_t number() const;  // the lower half

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// XXH3 of 64 bits.
uint64_t checksum(const void* data, uint64_t bytes);

}  // namespace pfrt
