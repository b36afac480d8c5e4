// SPDX-License-Identifier: Apache-2.0
#include "core/base/os/log.h"

#include <sys/uio.h>
#include <unistd.h>

#include "core/base/foreign.h"

namespace pfrt {
namespace {

constexpr std::string_view kWords[] = {"", "debug", "info", "warning", "error", "off"};

thread_local bool in_log_function = false;

}  // namespace

void Logger::set_sink(pfrt_log_fn fn, void* user) {
  std::shared_ptr<Client> client;
  if (fn) client = std::make_shared<Client>(Client{fn, user});
  std::unique_lock lock(mutex_);
  client_.swap(client);
  if (client && !in_log_function) returned_.wait(lock, [&] { return client->calls == 0; });
}

std::shared_ptr<Logger::Client> Logger::begin_call() {
  if (in_log_function) return nullptr;
  std::lock_guard lock(mutex_);
  if (client_) ++client_->calls;
  return client_;
}

void Logger::end_call(Client& client) {
  std::lock_guard lock(mutex_);
  if (--client.calls == 0) returned_.notify_all();
}

bool Logger::write_to_client(pfrt_log_level level, std::string_view text) {
  const auto client = begin_call();
  if (!client) return false;
  in_log_function = true;
  call_foreign([&] { client->fn(client->user, level, to_c(text)); });
  in_log_function = false;
  end_call(*client);
  return true;
}

void Logger::write(pfrt_log_level level, std::string_view text) {
  if (own_ && own_->parent_ == this && const_cast<Logger*>(own_)->write_to_client(level, text))
    return;
  if (write_to_client(level, text)) return;
  if (parent_) return parent_->write(level, text);
  const std::string_view parts[] = {"pyflame_rt ", kWords[level < PFRT_LOG_OFF ? level : 0], ": ",
                                    text, "\n"};
  iovec line[std::size(parts)];
  for (size_t i = 0; i < std::size(parts); ++i)
    line[i] = {const_cast<char*>(parts[i].data()), parts[i].size()};
  // A single call keeps lines of several threads apart, and takes no memory. It does nothing when
  // stderr is gone.
  [[maybe_unused]] const ssize_t n = ::writev(STDERR_FILENO, line, std::size(line));
}

pfrt_log_level log_level_from(std::string_view word) {
  for (pfrt_log_level level = PFRT_LOG_DEBUG; level <= PFRT_LOG_OFF; ++level)
    if (kWords[level] == word) return level;
  return PFRT_LOG_UNSET;
}

}  // namespace pfrt
