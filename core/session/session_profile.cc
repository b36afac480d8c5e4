// SPDX-License-Identifier: Apache-2.0
#include "core/session/session_profile.h"

#include <utility>

#include "core/base/os/cpu.h"
#include "core/session/profile_file.h"

namespace pfrt {

Profile* SessionProfile::begin(const std::string& prefix, const Model& model, uint64_t started_ns) {
  static std::atomic<uint64_t> last_number{0};
  profile_ = std::make_unique<Profile>();
  prefix_ = prefix;
  number_ = last_number.fetch_add(1, std::memory_order_relaxed) + 1;
  const Progress::Stages load = model.take_load_stages();
  profile_->started_before(load[0].ns ? load[0].ns : started_ns);
  uint64_t end_ns = 0;
  for (size_t i = 1; i < load.size() && load[i].ns; ++i) {
    end_ns = load[i].ns;
    profile_->add(Profile::Kind::kStage, load[i - 1].ns, end_ns, profile_->name(load[i - 1].name));
  }
  if (end_ns)
    profile_->add(Profile::Kind::kStage, load[0].ns, end_ns, profile_->name("model_loading"));
  return profile_.get();
}

void SessionProfile::open(uint64_t started_ns, bool write_at_end) {
  if (!profile_) return;
  profile_->add(Profile::Kind::kStage, started_ns, os::monotonic_ns(),
                profile_->name("session_initialization"));
  recording_.store(profile_.get(), std::memory_order_release);
  write_at_end_ = write_at_end;
}

Result<std::string_view> SessionProfile::end(const Model& model) {
  const std::lock_guard lock(mutex_);
  if (profile_ && path_.empty()) {
    std::string path = profile_path(prefix_, number_);
    Status written = write_profile(*profile_,
                                   {.graph = model.signature().name,
                                    .session = number_,
                                    .parameter_bytes = model.info().parameter_bytes},
                                   path);
    if (!written.ok()) return written.prepend("ending the session's profile");
    recording_.store(nullptr, std::memory_order_release);
    path_ = std::move(path);
  }
  return std::string_view(path_);
}

}  // namespace pfrt
