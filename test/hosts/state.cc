// SPDX-License-Identifier: Apache-2.0
//
// Reads the state with system calls and C's own functions, so that looking changes nothing.
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <clocale>
#include <cstdio>
#include <cstring>
#include <locale>

#include "test/hosts/host.h"

extern char** environ;

namespace host {
namespace {

// Flag that the C library adds to every action that goes through its sigaction.
constexpr int kRestorer = 0x04000000;

template <typename T>
std::string hex(const T& value) {
  constexpr char digits[] = "0123456789abcdef";
  std::string out;
  const auto* at = reinterpret_cast<const unsigned char*>(&value);
  for (size_t i = 0; i < sizeof value; ++i) {
    out += digits[at[i] >> 4];
    out += digits[at[i] & 15];
  }
  return out;
}

// The kernel fills in no more of a set than it has signals.
std::string members(const sigset_t& set) {
  std::string out;
  for (int n = 1; n < NSIG; ++n)
    if (sigismember(&set, n) == 1) out += std::to_string(n) + " ";
  return out;
}

std::string contents(const char* path) {
  std::string out;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  char piece[4096];
  for (ssize_t n; fd >= 0 && (n = read(fd, piece, sizeof piece)) > 0;)
    out.append(piece, static_cast<size_t>(n));
  if (fd >= 0) close(fd);
  return out;
}

void files(State& out) {
  DIR* folder = opendir("/proc/self/fd");
  if (!folder) return;
  while (const dirent* entry = readdir(folder)) {
    const int fd = atoi(entry->d_name);
    if (entry->d_name[0] == '.' || fd == dirfd(folder)) continue;
    char target[512] = {};
    const std::string link = std::string("/proc/self/fd/") + entry->d_name;
    if (readlink(link.c_str(), target, sizeof target - 1) < 0) continue;
    out["file " + std::string(entry->d_name)] =
        std::string(target) + " " + hex(fcntl(fd, F_GETFL)) + " " + hex(fcntl(fd, F_GETFD));
  }
  closedir(folder);
}

void signals(State& out) {
  for (int n = 1; n < NSIG; ++n) {
    struct sigaction action {};
    if (sigaction(n, nullptr, &action) != 0) continue;
    out["signal " + std::to_string(n)] = hex(action.sa_sigaction) + " " +
                                         hex(action.sa_flags & ~kRestorer) + " " +
                                         members(action.sa_mask);
  }
  sigset_t mask;
  sigemptyset(&mask);
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  out["signal mask"] = members(mask);
  stack_t stack{};
  sigaltstack(nullptr, &stack);
  out["alternate stack"] = hex(stack.ss_sp) + " " + hex(stack.ss_size) + " " + hex(stack.ss_flags);
}

void limits_and_timers(State& out) {
  for (int n = 0; n < RLIMIT_NLIMITS; ++n) {
    rlimit limit{};
    if (getrlimit(static_cast<__rlimit_resource>(n), &limit) == 0)
      out["limit " + std::to_string(n)] = hex(limit);
  }
  for (const auto kind : {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF}) {
    itimerval timer{};
    getitimer(kind, &timer);
    out["timer " + std::to_string(kind)] = hex(timer.it_interval);
  }
}

}  // namespace

State state() {
  State out;
  unsigned short x87 = 0;
  const unsigned mxcsr = _mm_getcsr();
  __asm__ volatile("fnstcw %0" : "=m"(x87));
  out["MXCSR"] = hex(mxcsr);
  out["x87 control word"] = hex(x87);
  out["locale"] = setlocale(LC_ALL, nullptr);
  const std::locale global;
  out["C++ locale"] =
      global.name() + " " + std::use_facet<std::numpunct<char>>(global).decimal_point();
  signals(out);
  const std::string status = contents("/proc/self/status");
  for (const char* line : {
         "Umask:", "NoNewPrivs:", "Seccomp:",
#if !defined(PFRT_SANITIZE_THREAD)  // its runtime starts a thread of its own
             "Threads:",
#endif
       }) {
    const size_t at = status.find(line);
    if (at != std::string::npos) out[line] = status.substr(at, status.find('\n', at) - at);
  }
  char folder[4096] = {};
  out["folder"] = getcwd(folder, sizeof folder) ? folder : "";
  for (char** variable = environ; *variable; ++variable)
    out["variables"] += *variable + std::string("\n");
  files(out);
  limits_and_timers(out);
  char name[16] = {};
  pthread_getname_np(pthread_self(), name, sizeof name);
  out["thread name"] = name;
  cpu_set_t processors;
  CPU_ZERO(&processors);
  sched_getaffinity(0, sizeof processors, &processors);
  out["processors"] = hex(processors);
  out["dumpable"] = std::to_string(prctl(PR_GET_DUMPABLE));
  return out;
}

}  // namespace host
