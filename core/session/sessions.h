// SPDX-License-Identifier: Apache-2.0
//
// The sessions of an environment: where memory runs out, the caches of all of them are released.
// Thread-safe.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace pfrt {

class Session;

class Sessions {
 public:
  void add(const std::shared_ptr<Session>& session);
  // Plans, idle blocks and second plans of every session; runs under way keep what they use.
  // The bytes of blocks that this was.
  uint64_t release_memory();

  // Calls |fn| with each, and the sum of what it gives. One that is about to end waits for the call
  // with it, so that no session ends here. One thread at a time.
  uint64_t tend(const std::function<uint64_t(Session& session)>& fn);
  // First of all when a session ends.
  void forget(const Session* session);

 private:
  std::mutex mutex_;
  std::condition_variable tended_changed_;
  const Session* tended_ = nullptr;
  std::vector<std::pair<Session*, std::weak_ptr<Session>>> sessions_;
};

}  // namespace pfrt
