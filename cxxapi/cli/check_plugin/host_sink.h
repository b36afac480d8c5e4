// SPDX-License-Identifier: Apache-2.0
//
// The sink that a plug-in's calls report to in a test.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "cxxapi/cli/check_plugin/ages.h"
#include "cxxapi/cli/check_plugin/plugin_file.h"

namespace cli::check {

class HostSink {
 public:
  // |stop| is the answer of its stop function.
  explicit HostSink(Age age, pfrt_code stop = PFRT_CODE_OK) : stop_(stop) {
    pfrt_sink sink{};
    sink.host = this;
    sink.fail = [](const pfrt_sink* s, pfrt_code code, uint32_t node, pfrt_string message) {
      auto& self = *static_cast<HostSink*>(s->host);
      const std::lock_guard lock(self.mutex_);
      self.text_ = text_of(message);
      self.node_ = node;
      return code;
    };
    sink.log = [](const pfrt_sink*, pfrt_log_level, pfrt_string) {};
    sink.stop = [](const pfrt_sink* s) { return static_cast<HostSink*>(s->host)->stop_; };
    sink.progress = [](const pfrt_sink* s, double fraction) {
      auto& self = *static_cast<HostSink*>(s->host);
      const std::lock_guard lock(self.mutex_);
      // Written so that what is not a number is a fault too.
      const bool good = fraction >= self.told_ && fraction <= 1;
      if (!good && self.progress_fault_.empty())
        self.progress_fault_ =
            "it told " + std::to_string(fraction) + " after " + std::to_string(self.told_);
      if (good) self.told_ = fraction;
    };
    sink_ = std::make_unique<Sized<pfrt_sink>>(age, sink, "the sink");
    sink_->make_read_only();
  }
  const pfrt_sink* get() const { return sink_->get(); }
  uint32_t node() const { return node_; }
  std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }
  // The first thing wrong with the progress that was told; empty when nothing was.
  std::string progress_fault() const {
    const std::lock_guard lock(mutex_);
    return progress_fault_;
  }
  // Writes ": " and the message, or nothing.
  std::string reason(pfrt_code code) const {
    const std::string said = text();
    return code_text(code) + (said.empty() ? "" : ": " + said);
  }

 private:
  const pfrt_code stop_;
  mutable std::mutex mutex_;
  std::string text_, progress_fault_;
  double told_ = 0;
  uint32_t node_ = PFRT_NO_INDEX;
  std::unique_ptr<Sized<pfrt_sink>> sink_;
};

}  // namespace cli::check
