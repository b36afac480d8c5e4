// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/machine/process.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <thread>
#include <utility>

#include "cxxapi/cli/print/text.h"

namespace cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMostOutput = size_t{64} << 20;

// Returns a word that ends the child's answer and differs each time. Code in the child may end the
// process by itself, with 0 too, and may write to any descriptor.
std::string closing_word() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return "done " + std::to_string(::getpid());
  std::string word;
  for (const unsigned char byte : bytes) {
    word += static_cast<char>('a' + (byte & 15));
    word += static_cast<char>('a' + (byte >> 4));
  }
  return word;
}

void write_all(int fd, const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    done += static_cast<size_t>(n);
  }
}

[[noreturn]] void child_main(const std::function<std::string()>& work, const std::string& closing,
                             int fd, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  int code = 1;
  std::string output;
  try {
    output = work();
    output += closing;
    code = 0;
  } catch (const std::exception& error) {
    output = one_line(error.what());
  } catch (...) {
    output = "an unknown exception";
  }
  write_all(fd, output);
  ::_exit(code);
}

// Reads until the end of |fd|, or until there is too much; returns false when the deadline came
// first.
bool read_until(int fd, Clock::time_point deadline, std::string* out) {
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    pollfd waiting{fd, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(std::min<long long>(left, 60000)));
    if (ready <= 0) continue;
    char buffer[4096];
    const ssize_t n = ::read(fd, buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0 || out->size() > kMostOutput) return true;
    out->append(buffer, static_cast<size_t>(n));
  }
}

// Waits for the end of |child|, which may have closed its end of the pipe long before; returns
// false when the deadline came first.
bool wait_until(pid_t child, Clock::time_point deadline, int* status) {
  for (;;) {
    const pid_t ended = ::waitpid(child, status, WNOHANG);
    if (ended == child || (ended < 0 && errno != EINTR)) return true;
    if (Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

std::string seconds_text(std::chrono::milliseconds time) {
  return number_text(static_cast<double>(time.count()) / 1000) + " s";
}

}  // namespace

ChildResult run_in_child(const std::function<std::string()>& work,
                         std::chrono::milliseconds timeout) {
  ChildResult result;
  int ends[2];
  std::fflush(nullptr);
  if (::pipe(ends) != 0) {
    result.reason = std::string("no pipe: ") + std::strerror(errno);
    return result;
  }
  const std::string closing = closing_word();
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    child_main(work, closing, ends[1], parent);
  }
  ::close(ends[1]);
  if (child < 0) {
    result.reason = std::string("cannot fork: ") + std::strerror(errno);
    ::close(ends[0]);
    return result;
  }
  std::string text;
  const Clock::time_point deadline = Clock::now() + timeout;
  int status = 0;
  const bool read = read_until(ends[0], deadline, &text);
  ::close(ends[0]);
  const bool too_much = text.size() > kMostOutput;
  const bool finished = read && !too_much && wait_until(child, deadline, &status);
  if (!finished) {
    ::kill(child, SIGKILL);
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
  }
  if (too_much) {
    result.reason = "it wrote more than 64 MiB to a pipe that is not its own";
  } else if (!finished) {
    result.timed_out = true;
    result.reason = "no result after " + seconds_text(timeout);
  } else if (WIFSIGNALED(status)) {
    result.reason = std::string("crashed: ") + strsignal(WTERMSIG(status));
  } else if (WEXITSTATUS(status) != 0) {
    result.reason = text.empty() ? "exited with " + std::to_string(WEXITSTATUS(status)) : text;
  } else if (!text.ends_with(closing)) {
    result.reason = "exited with 0 before it was done";
  } else {
    text.resize(text.size() - closing.size());
    result.ok = true;
    result.output = std::move(text);
  }
  return result;
}

uint64_t peak_memory() {
  std::ifstream status("/proc/self/status");
  std::string word;
  uint64_t kilobytes = 0;
  while (status >> word) {
    if (word == "VmHWM:" && status >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

}  // namespace cli
