// SPDX-License-Identifier: Apache-2.0
#include "core/base/os/cpu.h"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace pfrt::os {
namespace {

// 0 = no limit.
uint32_t tighter(uint32_t a, uint32_t b) { return a == 0 ? b : b == 0 ? a : std::min(a, b); }

uint32_t processors(int64_t quota_us, int64_t period_us) {
  if (quota_us <= 0 || period_us <= 0) return 0;
  return static_cast<uint32_t>(std::min<int64_t>((quota_us - 1) / period_us + 1, 1 << 20));
}

uint32_t quota_v2(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");
  int64_t quota = 0, period = 0;
  return file >> quota >> period ? processors(quota, period) : 0;  // "max" is no number
}

uint32_t quota_v1(const std::string& folder) {
  std::ifstream quota_file(folder + "/cpu.cfs_quota_us"),
      period_file(folder + "/cpu.cfs_period_us");
  int64_t quota = 0, period = 0;
  return quota_file >> quota && period_file >> period ? processors(quota, period) : 0;
}

bool lists(const std::string& words, const std::string& word) {
  return ("," + words + ",").find("," + word + ",") != std::string::npos;
}

// A mounted hierarchy: which group its top is, and where.
struct Mount {
  bool v2;
  std::string top, folder;
};

// Lines of mountinfo: id parent dev top folder options... - type source super-options
std::vector<Mount> mounts(const std::string& root) {
  std::vector<Mount> out;
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream head(line.substr(0, dash)), tail(line.substr(dash + 3));
    std::string skip, top, folder, type, source, options;
    head >> skip >> skip >> skip >> top >> folder;
    tail >> type >> source >> options;
    if (type == "cgroup2" || (type == "cgroup" && lists(options, "cpu")))
      out.push_back({type == "cgroup2", top, root + folder});
  }
  return out;
}

// |path|'s group and every group around it may set a limit. A container sees its own group as the
// mount's top, while the path may still be told from the host's.
uint32_t along(const Mount& mount, std::string path) {
  if (mount.top != "/" && path.rfind(mount.top, 0) == 0) path.erase(0, mount.top.size());
  for (uint32_t limit = 0;;) {
    if (path == "/") path.clear();
    const std::string folder = mount.folder + path;
    limit = tighter(limit, mount.v2 ? quota_v2(folder) : quota_v1(folder));
    if (path.empty()) return limit;
    const size_t slash = path.rfind('/');
    path.resize(slash == std::string::npos ? 0 : slash);
  }
}

int affinity() {
  for (size_t most = 1024; most <= (size_t{1} << 16); most *= 2) {
    cpu_set_t* set = CPU_ALLOC(most);
    if (!set) return 1;
    const size_t bytes = CPU_ALLOC_SIZE(most);
    const bool fits = sched_getaffinity(0, bytes, set) == 0;
    const int count = fits ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (fits) return std::max(count, 1);
    if (errno != EINVAL) break;  // EINVAL: the machine has more
  }
  return 1;
}

uint64_t read_clock(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

uint32_t cgroup_processors(const std::string& root) {
  const std::vector<Mount> all = mounts(root);
  uint32_t limit = 0;
  std::ifstream groups(root + "/proc/self/cgroup");  // lines of id:controllers:path
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    for (const Mount& mount : all)
      if (mount.v2 ? controllers.empty() : lists(controllers, "cpu"))
        limit = tighter(limit, along(mount, line.substr(second + 1)));
  }
  return limit;
}

uint32_t usable_processors() {
  // Reading the cgroups' files costs hundreds of microseconds.
  static std::atomic<uint64_t> checked_at{0};
  static std::atomic<uint32_t> quota{0};
  const uint64_t now = monotonic_ns();
  if (const uint64_t last = checked_at.load(std::memory_order_acquire);
      last == 0 || now - last > 100'000'000) {
    quota.store(cgroup_processors(), std::memory_order_relaxed);
    checked_at.store(now, std::memory_order_release);
  }
  return std::max(
      1u, tighter(static_cast<uint32_t>(affinity()), quota.load(std::memory_order_relaxed)));
}

uint64_t monotonic_ns() { return read_clock(CLOCK_MONOTONIC); }

uint64_t recent_ns() { return read_clock(CLOCK_MONOTONIC_COARSE); }

}  // namespace pfrt::os
