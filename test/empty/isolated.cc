// SPDX-License-Identifier: Apache-2.0
#include "test/empty/isolated.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>

namespace pfrt_empty {
namespace {

// Memory that a child process shares with its parent.
struct Shared {
  std::atomic<size_t> index;  // the case at hand
};

void tell(int pipe, size_t index, const std::string& text) {
  std::string line = std::to_string(index) + " " + text;
  for (char& c : line)
    if (c == '\n') c = ' ';
  line += '\n';
  for (size_t done = 0; done < line.size();) {
    const ssize_t n = write(pipe, line.data() + done, line.size() - done);
    if (n <= 0) _exit(1);
    done += static_cast<size_t>(n);
  }
}

[[noreturn]] void run_from(size_t first, size_t count, unsigned seconds,
                           const std::function<std::string(size_t)>& fn, Shared& shared, int pipe) {
  for (size_t i = first; i < count; ++i) {
    shared.index = i;
    alarm(seconds);
    std::string wrong;
    try {
      wrong = fn(i);
    } catch (const std::exception& error) {
      wrong = std::string("an exception: ") + error.what();
    }
    if (!wrong.empty()) tell(pipe, i, wrong);
  }
  shared.index = count;
  _exit(0);
}

std::string read_all(int pipe) {
  std::string out;
  char block[4096];
  for (ssize_t n; (n = read(pipe, block, sizeof block)) > 0;) out.append(block, size_t(n));
  return out;
}

}  // namespace

std::vector<Fault> run_isolated(size_t count, unsigned seconds,
                                const std::function<std::string(size_t)>& fn) {
  void* const memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("no memory to share with a child");
  Shared& shared = *new (memory) Shared{};
  std::vector<Fault> faults;
  for (size_t first = 0; first < count;) {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("no pipe");
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child < 0) throw std::runtime_error("no child");
    if (child == 0) run_from(first, count, seconds, fn, shared, ends[1]);
    close(ends[1]);
    const std::string told = read_all(ends[0]);
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    for (size_t at = 0, end; (end = told.find('\n', at)) != std::string::npos; at = end + 1) {
      size_t digits = 0;
      const std::string line = told.substr(at, end - at);
      const size_t index = std::stoul(line, &digits);
      faults.push_back({index, line.substr(digits + 1)});
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) break;
    const size_t index = shared.index;
    faults.push_back({index, WIFSIGNALED(status)
                                 ? "ends the process: " + std::string(strsignal(WTERMSIG(status)))
                                 : "ends the process"});
    first = index + 1;
  }
  munmap(memory, sizeof(Shared));
  return faults;
}

}  // namespace pfrt_empty
