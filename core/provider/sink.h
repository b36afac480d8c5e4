// SPDX-License-Identifier: Apache-2.0
//
// Receives the reports of a plug-in's call: keeps the message of a failure, hands lines to the log,
// says why the call should end. Each call has its own, used by the call's thread alone.
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

  // |fn| is told how far the call is, from 0 to 1.
  void set_progress(std::function<void(double)> fn) { progress_ = std::move(fn); }
  // Sets how the call may tune; |tuning| outlives the sink.
  void set_tuning(const pfrt_tuning* tuning) { sink_.tuning = tuning; }
  // Keeps warnings in |warnings| instead of writing them to the log.
  void keep_warnings(std::vector<std::string>* warnings) { warnings_ = warnings; }

  const pfrt_sink* get() const { return &sink_; }
  // The node that the plug-in reported with its failure, or PFRT_NO_INDEX.
  uint32_t node() const { return node_; }
  // A status for |code|: the parts of |doing|, then the message, or the reason why the call was
  // stopped where |code| says that it was.
  template <typename... Parts>
  Status status(pfrt_code code, const Parts&... doing) const {
    return code == PFRT_CODE_OK ? Status() : failure(code, message(doing...));
  }

  // Returns |fn|'s code. An exception becomes |escaped|, with |who| in the message.
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
