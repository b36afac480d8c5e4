// SPDX-License-Identifier: Apache-2.0
//
// Describes constants as text that is equal for equal types, dimensions and bytes, wherever the
// bytes lie. Equal bytes are found by a checksum, and then compared, since others with the same
// checksum can be made. A buffer's bytes are read once for that while it lives. Thread-safe.
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
  // The text for |tensor|. It names the buffer where the bytes are not there yet, and for strings.
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
  // These are called with the mutex held.
  void remember(const Place& place, Known known);
  void forget(const Place& place);
  void forget_expired();

  std::mutex mutex_;
  KnownBytes known_;
  std::multimap<uint64_t, Place> by_sum_;  // all places in known_, by checksum
  std::map<const void*, Known> buffers_;   // buffers that are not read, by identity
  uint64_t numbers_ = 0;                   // numbers given so far; equal bytes have equal numbers
};

}  // namespace pfrt
