// SPDX-License-Identifier: Apache-2.0
#include "core/base/os/cpu.h"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <sstream>
#include <string>

namespace pfrt::os {
namespace {

// Processors granted by |folder|'s quota; 0 = no limit.
uint32_t quota_v2(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");
  std::string quota;
  uint64_t period = 0;
  if (!(file >> quota >> period) || quota == "max" || period == 0) return 0;
  const uint64_t us = std::strtoull(quota.c_str(), nullptr, 10);
  return us ? static_cast<uint32_t>((us + period - 1) / period) : 0;
}

uint32_t quota_v1(const std::string& folder) {
  std::ifstream quota_file(folder + "/cpu.cfs_quota_us"),
      period_file(folder + "/cpu.cfs_period_us");
  int64_t quota = 0, period = 0;
  if (!(quota_file >> quota) || !(period_file >> period) || quota <= 0 || period <= 0) return 0;
  return static_cast<uint32_t>((quota + period - 1) / period);
}

uint32_t tighter(uint32_t a, uint32_t b) { return a == 0 ? b : b == 0 ? a : std::min(a, b); }

// Every group from the process's own up to the root may set a limit.
uint32_t cgroup_quota() {
  std::ifstream groups("/proc/self/cgroup");
  uint32_t limit = 0;
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    const bool v2 = controllers.empty();
    if (!v2 && ("," + controllers + ",").find(",cpu,") == std::string::npos) continue;
    while (true) {
      if (path == "/") path.clear();
      limit = tighter(
          limit, v2 ? quota_v2("/sys/fs/cgroup" + path) : quota_v1("/sys/fs/cgroup/cpu" + path));
      if (path.empty()) break;
      path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
    }
  }
  return limit;
}

}  // namespace

uint32_t usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int affinity = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  // Reading the cgroup's files costs tens of microseconds, so the quota is looked up at most ten
  // times a second.
  static std::atomic<uint64_t> checked_at{0};
  static std::atomic<uint32_t> quota{0};
  const uint64_t now = monotonic_ns();
  if (const uint64_t last = checked_at.load(std::memory_order_acquire);
      last == 0 || now - last > 100'000'000) {
    quota.store(cgroup_quota(), std::memory_order_relaxed);
    checked_at.store(now, std::memory_order_release);
  }
  return std::max(1u, tighter(static_cast<uint32_t>(std::max(affinity, 1)),
                              quota.load(std::memory_order_relaxed)));
}

uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace pfrt::os
