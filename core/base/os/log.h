// SPDX-License-Identifier: Apache-2.0
//
// Writes log lines to stderr, or to a function that the client registered. Thread-safe; no lock is
// held while that function runs, which may use the library and this logger.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
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
  // While it lives, lines that this thread writes to |own|'s parent go to |own|, by its level. A
  // null |own| changes nothing.
  class Scope {
   public:
    explicit Scope(const Logger* own) : outer_(own_) {
      if (own) own_ = own;
    }
    ~Scope() { own_ = outer_; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    const Logger* outer_;
  };
  void set_level(pfrt_log_level level) { level_ = level; }
  pfrt_log_level level() const { return level_; }
  // Sends lines to |fn|, or to the parent, else to stderr, where it is null. When this returns, the
  // function before is no longer called and has returned on all threads. A thread that is in a log
  // function waits for none: it would wait for itself.
  void set_sink(pfrt_log_fn fn, void* user);
  bool wants(pfrt_log_level level) const {
    const Logger& taker = own_ && own_->parent_ == this ? *own_ : *this;
    return level >= taker.level_ && level < PFRT_LOG_OFF;
  }
  // A line that a log function causes on its own thread goes to stderr: no function is entered
  // again by what it does.
  void write(pfrt_log_level level, std::string_view text);

  template <typename... Parts>
  void log(pfrt_log_level level, const Parts&... parts) {
    if (wants(level)) write(level, message(parts...));
  }

 private:
  // A function that the client has set.
  struct Client {
    pfrt_log_fn fn = nullptr;
    void* user = nullptr;
    uint32_t calls = 0;  // under way
  };
  // Null: there is no function to call.
  std::shared_ptr<Client> begin_call();
  void end_call(Client& client);
  bool write_to_client(pfrt_log_level level, std::string_view text);

  static inline constinit thread_local const Logger* own_ = nullptr;  // NOLINT: the innermost scope

  std::atomic<pfrt_log_level> level_{PFRT_LOG_WARNING};
  Logger* const parent_;
  std::mutex mutex_;  // guards the members below and the calls of all clients
  std::condition_variable returned_;
  std::shared_ptr<Client> client_;  // null: lines go to stderr
};

// The level that |word| names ("warning"); PFRT_LOG_UNSET when it names none.
pfrt_log_level log_level_from(std::string_view word);

}  // namespace pfrt
