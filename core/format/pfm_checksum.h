// SPDX-License-Identifier: Apache-2.0
//
// The checksums of a .pfm file: XXH3-64. A Checksum belongs to one thread.
#pragma once

#include <cstdint>
#include <memory>

#include "core/format/pfm_layout.h"

namespace pfrt::pfm {

// Of bytes that come in pieces.
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

uint64_t checksum_of(const void* data, uint64_t bytes);

// What |header| should have for a buffer of |bytes| bytes with its size at |buffer|.
uint64_t checksum_of(const Header& header, const void* buffer, uint64_t bytes);

}  // namespace pfrt::pfm
