// SPDX-License-Identifier: Apache-2.0
//
// What a plug-in's call reports through. Keeps the message of what failed, hands lines to the log,
// says why the call should end. One a call; the call's thread alone uses it.
#pragma once

#include <functional>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/os/log.h"
#include "core/base/status.h"
#include "core/base/stop.h"
#include "pyflame_rt/plugin.h"

namespace pfrt {

class Sink {
 public:
  // |logger| may be null. |stop| outlives the sink.
  explicit Sink(Logger* logger, const Stop& stop = no_stop());
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  // Hears how far the call is, from 0 to 1.
  void set_progress(std::function<void(double)> fn) { progress_ = std::move(fn); }
  // How the call may tune; outlives the sink.
  void set_tuning(const pfrt_tuning* tuning) { sink_.tuning = tuning; }
  // Keeps warnings there instead of writing them to the log.
  void keep_warnings(std::vector<std::string>* warnings) { warnings_ = warnings; }

  const pfrt_sink* get() const { return &sink_; }
  // The node that fail was given, or PFRT_NO_INDEX.
  uint32_t node() const { return node_; }
  // What was being done, in parts, then the message; why the call was stopped, where that is what
  // it returned.
  template <typename... Parts>
  Status status(pfrt_code code, const Parts&... doing) const {
    return code == PFRT_CODE_OK ? Status() : failure(code, message(doing...));
  }

  // |fn|'s code. What it throws becomes |escaped|, of |who|.
  template <typename Fn>
  pfrt_code call(Fn&& fn, pfrt_code escaped = PFRT_CODE_PROVIDER,
                 std::string_view who = "provider") {
    try {
      return fn();
    } catch (const std::bad_alloc&) {
      return PFRT_CODE_OUT_OF_MEMORY;
    } catch (const std::exception& fault) {
      return fail(escaped, message("an exception escaped the ", who, ": ", fault.what()));
    } catch (...) {
      return fail(escaped, message("an exception escaped the ", who));
    }
  }

 private:
  static const Stop& no_stop();
  static Sink& of(const pfrt_sink* sink) { return *static_cast<Sink*>(sink->host); }
  pfrt_code fail(pfrt_code code, std::string_view text);
  Status failure(pfrt_code code, const std::string& doing) const;
  void log(pfrt_log_level level, std::string_view text);
  pfrt_code stop();

  pfrt_sink sink_{};
  Logger* logger_;
  const Stop& stop_;
  std::function<void(double)> progress_;
  std::vector<std::string>* warnings_ = nullptr;
  Status stopped_;
  uint32_t node_ = PFRT_NO_INDEX;
  std::string text_;
};

}  // namespace pfrt
