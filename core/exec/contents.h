// SPDX-License-Identifier: Apache-2.0
//
// What constants hold, as text that is equal for equal types, dimensions and bytes, wherever these
// lie. A buffer's bytes are read once while it lives. Thread-safe.
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
  // By XXH3 of 128 bits. Of bytes that are not there yet, and of strings: which buffer it is.
  std::string key_of(const Tensor& tensor);

 private:
  struct Known {
    std::weak_ptr<Buffer> buffer;
    std::string hash;
  };
  std::mutex mutex_;
  std::map<std::pair<const void*, uint64_t>, Known> known_;  // by address and bytes
};

}  // namespace pfrt
