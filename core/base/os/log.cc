// SPDX-License-Identifier: Apache-2.0
#include "core/base/os/log.h"

#include <unistd.h>

#include "core/base/foreign.h"

namespace pfrt {
namespace {

constexpr std::string_view kWords[] = {"", "debug", "info", "warning", "error", "off"};

}  // namespace

void Logger::set_sink(pfrt_log_fn fn, void* user) {
  std::lock_guard lock(mutex_);
  fn_ = fn;
  user_ = user;
}

void Logger::write(pfrt_log_level level, std::string_view text) {
  if (parent_) return parent_->write(level, text);
  std::lock_guard lock(mutex_);
  if (fn_) {
    call_foreign([&] { fn_(user_, level, to_c(text)); });
    return;
  }
  const std::string line =
      message("pyflame_rt ", kWords[level < PFRT_LOG_OFF ? level : 0], ": ", text, "\n");
  // A single write keeps lines of several threads apart. It does nothing when stderr is gone.
  [[maybe_unused]] const ssize_t n = ::write(STDERR_FILENO, line.data(), line.size());
}

pfrt_log_level log_level_from(std::string_view word) {
  for (pfrt_log_level level = PFRT_LOG_DEBUG; level <= PFRT_LOG_OFF; ++level)
    if (kWords[level] == word) return level;
  return PFRT_LOG_UNSET;
}

}  // namespace pfrt
