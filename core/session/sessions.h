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
  // Drops plans, idle blocks and second plans of every session; runs under way keep what they use.
  // Returns the bytes of blocks freed.
  uint64_t release_memory();

  // Calls |fn| with each session, and returns the sum of its results. A session that is about to
  // end waits for its call to end, so that none ends here. Used by one thread at a time.
  uint64_t tend(const std::function<uint64_t(Session& session)>& fn);
  // Is called first of all when a session ends.
  void forget(const Session* session);

 private:
  std::mutex mutex_;
  std::condition_variable tended_changed_;
  const Session* tended_ = nullptr;
  std::vector<std::pair<Session*, std::weak_ptr<Session>>> sessions_;
};

}  // namespace pfrt
