// SPDX-License-Identifier: Apache-2.0
//
// Tells the caller of long work how far it is, and the work that it must stop: when the caller says
// so, or at a deadline. Used by the thread that does the work.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "core/base/os/cpu.h"
#include "core/base/os/profile.h"
#include "core/base/status.h"
#include "core/base/stop.h"
#include "pyflame_rt/pyflame_rt.h"

namespace pfrt {

class Progress {
 public:
  Progress() = default;  // nobody listens, nothing cancels
  Progress(const uint32_t* cancelled, pfrt_progress_fn fn, void* user)
      : cancelled_(cancelled), fn_(fn), user_(user) {}

  // |ns| is on os::monotonic_ns; 0 = none.
  void set_deadline(uint64_t ns) { deadline_ns_ = ns; }
  uint64_t deadline_ns() const { return deadline_ns_; }
  // The earlier of the deadline and |ns|.
  uint64_t deadline_within(uint64_t ns) const {
    return deadline_ns_ != 0 ? std::min(deadline_ns_, ns) : ns;
  }
  const uint32_t* cancel_flag() const { return cancelled_; }
  // Sets the profile that records stages; null = none.
  void set_profile(Profile* profile) { profile_ = profile; }
  Profile* profile() const { return profile_; }

  // Names and starts of the first few stages; the last one marks the end.
  struct Begun {
    std::string_view name;
    uint64_t ns = 0;
  };
  using Stages = std::array<Begun, 6>;
  const Stages& stages() const { return stages_; }

  // Begins stage |name|, which takes the work up to |until| of the whole. CANCELLED when the caller
  // wants it to stop, DEADLINE when its time is over.
  Status stage(std::string_view name, double until) {
    name_ = name;
    if (stage_count_ < stages_.size()) stages_[stage_count_++] = {name, os::monotonic_ns()};
    begin_ = until_;
    until_ = until;
    return at(0);
  }
  // Reports that |done| (0 to 1) of the stage is done. A copy may report too, while the stage in
  // which it was made lasts.
  Status at(double done) const {
    const double fraction = begin_ + (until_ - begin_) * std::clamp(done, 0.0, 1.0);
    told_ = std::max(told_, fraction);
    if (fn_) fn_(user_, told_, to_c(name_));
    return stop();
  }
  // The same without a listener, for work inside of work that reports.
  Progress quiet() const {
    Progress out = *this;
    out.fn_ = nullptr;
    return out;
  }
  Status stop() const {
    if (raised(cancelled_)) return error(Code::kCANCELLED, "cancelled by the caller");
    if (deadline_ns_ && os::recent_ns() > deadline_ns_)
      return error(Code::kDEADLINE, "the deadline has passed");
    return {};
  }
  bool stopped() const { return !stop().ok(); }

 private:
  const uint32_t* cancelled_ = nullptr;
  pfrt_progress_fn fn_ = nullptr;
  void* user_ = nullptr;
  std::string_view name_;
  uint64_t deadline_ns_ = 0;
  double begin_ = 0, until_ = 0;
  mutable double told_ = 0;
  Profile* profile_ = nullptr;
  Stages stages_{};
  size_t stage_count_ = 0;
};

}  // namespace pfrt
