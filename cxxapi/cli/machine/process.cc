// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/machine/process.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <utility>

#include "cxxapi/cli/print/text.h"

namespace cli {
namespace {

using Clock = std::chrono::steady_clock;

// Follows what the work returned. What runs in the child may end the process by itself, with 0 too.
constexpr char kClosingWord = '\x04';

void write_all(int fd, const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    done += static_cast<size_t>(n);
  }
}

[[noreturn]] void child_main(const std::function<std::string()>& work, int fd, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  int code = 1;
  std::string output;
  try {
    output = work();
    output += kClosingWord;
    code = 0;
  } catch (const std::exception& error) {
    output = one_line(error.what());
  } catch (...) {
    output = "an unknown exception";
  }
  write_all(fd, output);
  ::_exit(code);
}

// Reads until the end of |fd|; false when the deadline came first.
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
    if (n <= 0) return true;
    out->append(buffer, static_cast<size_t>(n));
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
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    child_main(work, ends[1], parent);
  }
  ::close(ends[1]);
  if (child < 0) {
    result.reason = std::string("cannot fork: ") + std::strerror(errno);
    ::close(ends[0]);
    return result;
  }
  std::string text;
  const bool finished = read_until(ends[0], Clock::now() + timeout, &text);
  ::close(ends[0]);
  if (!finished) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!finished) {
    result.timed_out = true;
    result.reason = "no result after " + seconds_text(timeout);
  } else if (WIFSIGNALED(status)) {
    result.reason = std::string("crashed: ") + strsignal(WTERMSIG(status));
  } else if (WEXITSTATUS(status) != 0) {
    result.reason = text.empty() ? "exited with " + std::to_string(WEXITSTATUS(status)) : text;
  } else if (text.empty() || text.back() != kClosingWord) {
    result.reason = "exited with 0 before it was done";
  } else {
    text.pop_back();
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
