// SPDX-License-Identifier: Apache-2.0
//
// How long work tells its caller how far it is, and learns that it shall stop. Used by the thread
// that does the work.
#pragma once

#include <algorithm>
#include <atomic>
#include <string_view>

#include "core/base/status.h"
#include "pyflame_rt/pyflame_rt.h"

namespace pfrt {

class Progress {
 public:
  Progress() = default;  // nobody listens, nothing cancels
  Progress(const std::atomic<bool>* cancelled, pfrt_progress_fn fn, void* user)
      : cancelled_(cancelled), fn_(fn), user_(user) {}

  // The work goes on with |name|, which takes it up to |until| of the whole. CANCELLED when the
  // caller wants it to stop.
  Status stage(std::string_view name, double until) {
    name_ = name;
    begin_ = until_;
    until_ = until;
    return at(0);
  }
  // |done| (0 to 1) of the stage is done.
  Status at(double done) {
    const double fraction = begin_ + (until_ - begin_) * std::clamp(done, 0.0, 1.0);
    told_ = std::max(told_, fraction);
    if (fn_) fn_(user_, told_, to_c(name_));
    return stop();
  }
  Status stop() const {
    if (!cancelled()) return {};
    return error(Code::kCANCELLED, "cancelled by the caller");
  }
  bool cancelled() const { return cancelled_ && cancelled_->load(std::memory_order_relaxed); }

 private:
  const std::atomic<bool>* cancelled_ = nullptr;
  pfrt_progress_fn fn_ = nullptr;
  void* user_ = nullptr;
  std::string_view name_;
  double begin_ = 0, until_ = 0, told_ = 0;
};

}  // namespace pfrt
