// SPDX-License-Identifier: Apache-2.0
//
// The profile of a session, from its creation until somebody ends it. Thread-safe once open.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "core/base/os/profile.h"
#include "core/model/model.h"

namespace pfrt {

class SessionProfile {
 public:
  // Begins the profile of a session over |model| whose creation began at |started_ns|, and records
  // the stages of loading the model. Returns what creation records in.
  Profile* begin(const std::string& prefix, const Model& model, uint64_t started_ns);
  // Opens it for runs, where it was begun. |write_at_end|: also where nobody ends it.
  void open(uint64_t started_ns, bool write_at_end);
  // The profile that runs record in; null = none.
  Profile* recording() const { return recording_.load(std::memory_order_acquire); }
  // Start of the profile, on os::monotonic_ns; 0 = it was not begun.
  uint64_t start_ns() const { return profile_ ? profile_->start_ns() : 0; }
  bool write_at_end() const { return write_at_end_; }
  // Serves Session::end_profiling.
  Result<std::string_view> end(const Model& model);

 private:
  std::unique_ptr<Profile> profile_;
  std::atomic<Profile*> recording_{nullptr};
  std::string prefix_;
  bool write_at_end_ = false;
  uint64_t number_ = 0;
  std::mutex mutex_;  // guards path_
  std::string path_;
};

}  // namespace pfrt
