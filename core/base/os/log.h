// SPDX-License-Identifier: Apache-2.0
//
// Writes log lines to stderr, or to a function that the client registered. Thread-safe.
#pragma once

#include <atomic>
#include <mutex>
#include <string_view>

#include "core/base/status.h"
#include "pyflame_rt/pyflame_rt.h"

namespace pfrt {

class Logger {
 public:
  // With a |parent|, the parent writes the lines, but this logger's own level decides which lines
  // it gets. |parent| has to live longer.
  explicit Logger(Logger* parent = nullptr) : parent_(parent) {
    if (parent) level_ = parent->level();
  }
  void set_level(pfrt_log_level level) { level_ = level; }
  pfrt_log_level level() const { return level_; }
  void set_sink(pfrt_log_fn fn, void* user);
  bool wants(pfrt_log_level level) const { return level >= level_ && level < PFRT_LOG_OFF; }
  void write(pfrt_log_level level, std::string_view text);

  template <typename... Parts>
  void log(pfrt_log_level level, const Parts&... parts) {
    if (wants(level)) write(level, message(parts...));
  }

 private:
  std::atomic<pfrt_log_level> level_{PFRT_LOG_WARNING};
  Logger* const parent_;
  std::mutex mutex_;
  pfrt_log_fn fn_ = nullptr;
  void* user_ = nullptr;
};

// The level that |word| names ("warning"); PFRT_LOG_UNSET when it names none.
pfrt_log_level log_level_from(std::string_view word);

}  // namespace pfrt
