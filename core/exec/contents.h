// SPDX-License-Identifier: Apache-2.0
//
// What constants hold, as text that is equal for equal types, dimensions and bytes, wherever these
// lie. Bytes are found by a checksum, which anybody can make for other bytes, and then compared. A
// buffer's bytes are read once for that while it lives. Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "core/memory/tensor.h"

namespace pfrt {

class Contents {
 public:
  // Of bytes that are not there yet, and of strings: which buffer it is.
  std::string key_of(const Tensor& tensor);

 private:
  using Place = std::pair<const void*, uint64_t>;  // address and bytes
  struct Known {
    std::weak_ptr<Buffer> buffer;
    uint64_t number = 0, sum = 0;
  };
  using KnownBytes = std::map<Place, Known>;

  uint64_t number_of_bytes(const std::shared_ptr<Buffer>& buffer, const Place& place);
  uint64_t number_of_buffer(const std::shared_ptr<Buffer>& buffer);
  // With the mutex:
  void remember(const Place& place, Known known);
  void forget(const Place& place);
  void forget_expired();

  std::mutex mutex_;
  KnownBytes known_;
  std::multimap<uint64_t, Place> by_sum_;  // of all that are known
  std::map<const void*, Known> buffers_;   // by identity, of those that are not read
  uint64_t numbers_ = 0;                   // given so far; equal bytes have equal ones
};

}  // namespace pfrt
