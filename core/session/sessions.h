// SPDX-License-Identifier: Apache-2.0
//
// The sessions of an environment: where memory runs out, the caches of all of them are released.
// Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

namespace pfrt {

class Session;

class Sessions {
 public:
  void add(const std::shared_ptr<Session>& session);
  // Plans, idle blocks and second plans of every session; runs under way keep what they use.
  // The bytes of blocks that this was.
  uint64_t release_memory();

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<Session>> sessions_;
};

}  // namespace pfrt
