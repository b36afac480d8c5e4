// SPDX-License-Identifier: Apache-2.0
#include "core/base/os/cpu.h"

#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace pfrt::os {
namespace {

// 0 means no limit.
uint64_t tighter(uint64_t a, uint64_t b) { return a == 0 ? b : b == 0 ? a : std::min(a, b); }

uint32_t processors(int64_t quota_us, int64_t period_us) {
  if (quota_us <= 0 || period_us <= 0) return 0;
  return static_cast<uint32_t>(std::min<int64_t>((quota_us - 1) / period_us + 1, 1 << 20));
}

uint64_t quota_v2(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");
  int64_t quota = 0, period = 0;
  return file >> quota >> period ? processors(quota, period) : 0;  // "max" is no number
}

uint64_t quota_v1(const std::string& folder) {
  std::ifstream quota_file(folder + "/cpu.cfs_quota_us"),
      period_file(folder + "/cpu.cfs_period_us");
  int64_t quota = 0, period = 0;
  return quota_file >> quota && period_file >> period ? processors(quota, period) : 0;
}

// The number in a line "key number" of |path|; 0 = there is none.
uint64_t entry(const std::string& path, std::string_view key) {
  std::ifstream file(path);
  std::string word;
  for (uint64_t number = 0; file >> word >> number;)
    if (word == key) return number;
  return 0;
}

// Bytes that a group may still take, at least 1; 0 = no limit. Pages that only cache files can be
// dropped.
uint64_t room(const std::string& most, const std::string& now, uint64_t droppable) {
  std::ifstream most_file(most), now_file(now);
  uint64_t limit = 0, used = 0;
  if (!(most_file >> limit) || !(now_file >> used)) return 0;  // "max" is no number
  used -= std::min(used, droppable);
  return limit > used ? limit - used : 1;
}

// Beyond memory.high a group is slowed down, beyond memory.max its processes are ended.
uint64_t memory_v2(const std::string& folder) {
  const std::string now = folder + "/memory.current";
  const uint64_t droppable = entry(folder + "/memory.stat", "inactive_file");
  return tighter(room(folder + "/memory.max", now, droppable),
                 room(folder + "/memory.high", now, droppable));
}

// Share of the last ten seconds, in hundredths of a percent plus 1, in which nothing waited for
// memory, from "some avg10=1.53 avg60=0.87 ..."; 0 = the file does not say.
uint64_t calm(const std::string& path) {
  std::ifstream file(path);
  std::string kind, recent;
  if (!(file >> kind >> recent) || kind != "some" || recent.rfind("avg10=", 0) != 0) return 0;
  std::istringstream number(recent.substr(6));
  double percent = 0;
  if (!(number >> percent) || !(percent >= 0)) return 0;
  return static_cast<uint64_t>(10001.5 - std::min(percent, 100.0) * 100);
}

uint64_t calm_v1(const std::string&) { return 0; }  // it has no such file
uint64_t calm_v2(const std::string& folder) { return calm(folder + "/memory.pressure"); }

uint64_t memory_v1(const std::string& folder) {
  return room(folder + "/memory.limit_in_bytes", folder + "/memory.usage_in_bytes",
              entry(folder + "/memory.stat", "total_inactive_file"));
}

bool lists(const std::string& words, const std::string& word) {
  return ("," + words + ",").find("," + word + ",") != std::string::npos;
}

// A mounted hierarchy: the group that is its top, and its folder.
struct Mount {
  bool v2;
  std::string top, folder;
};

// Reads lines of mountinfo: id parent dev top folder options... - type source super-options
std::vector<Mount> mounts(const std::string& root, const std::string& controller) {
  std::vector<Mount> out;
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream head(line.substr(0, dash)), tail(line.substr(dash + 3));
    std::string skip, top, folder, type, source, options;
    head >> skip >> skip >> skip >> top >> folder;
    tail >> type >> source >> options;
    if (type == "cgroup2" || (type == "cgroup" && lists(options, controller)))
      out.push_back({type == "cgroup2", top, root + folder});
  }
  return out;
}

// The tightest limit of |path|'s group and every group around it. A container sees its own group as
// the mount's top, while the path may still be given from the host's.
template <typename Limit>
uint64_t along(const Mount& mount, std::string path, Limit&& limit_of) {
  if (mount.top != "/" && path.rfind(mount.top, 0) == 0) path.erase(0, mount.top.size());
  for (uint64_t limit = 0;;) {
    if (path == "/") path.clear();
    const std::string folder = mount.folder + path;
    limit = tighter(limit, limit_of(folder));
    if (path.empty()) return limit;
    const size_t slash = path.rfind('/');
    path.resize(slash == std::string::npos ? 0 : slash);
  }
}

// The tightest limit of this process's groups, by functions that read the limit of one; 0 = none.
uint64_t tightest(const std::string& root, const std::string& controller,
                  uint64_t (*v1)(const std::string&), uint64_t (*v2)(const std::string&)) {
  const std::vector<Mount> all = mounts(root, controller);
  uint64_t limit = 0;
  std::ifstream groups(root + "/proc/self/cgroup");  // lines of id:controllers:path
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    for (const Mount& mount : all)
      if (mount.v2 ? controllers.empty() : lists(controllers, controller))
        limit = tighter(limit, along(mount, line.substr(second + 1), mount.v2 ? v2 : v1));
  }
  return limit;
}

// Calls use(set, bytes of the set, processors it has room for); false where the system does not
// say.
template <typename Use>
bool with_affinity(Use&& use) {
  for (size_t most = 1024; most <= (size_t{1} << 16); most *= 2) {
    cpu_set_t* set = CPU_ALLOC(most);
    if (!set) return false;
    const size_t bytes = CPU_ALLOC_SIZE(most);
    const bool fits = sched_getaffinity(0, bytes, set) == 0;
    if (fits) use(set, bytes, most);
    CPU_FREE(set);
    if (fits) return true;
    if (errno != EINVAL) break;  // EINVAL: the machine has more
  }
  return false;
}

uint64_t read_clock(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

uint32_t cgroup_processors(const std::string& root) {
  return static_cast<uint32_t>(tightest(root, "cpu", quota_v1, quota_v2));
}

uint32_t allowed_processor_count() {
  int count = 1;
  with_affinity([&](cpu_set_t* set, size_t bytes, size_t) { count = CPU_COUNT_S(bytes, set); });
  return static_cast<uint32_t>(std::max(count, 1));
}

uint32_t usable_processors() {
  // The quota is kept for a while, since reading the cgroups' files costs hundreds of microseconds.
  static std::atomic<uint64_t> checked_at{0};
  static std::atomic<uint32_t> quota{0};
  const uint64_t now = monotonic_ns();
  if (const uint64_t last = checked_at.load(std::memory_order_acquire);
      last == 0 || now - last > 5'000'000'000) {
    quota.store(cgroup_processors(), std::memory_order_relaxed);
    checked_at.store(now, std::memory_order_release);
  }
  const uint64_t most = tighter(allowed_processor_count(), quota.load(std::memory_order_relaxed));
  return static_cast<uint32_t>(std::max(most, uint64_t{1}));
}

std::vector<uint32_t> allowed_processors() {
  std::vector<uint32_t> out(allowed_processor_count());
  size_t found = 0;
  with_affinity([&](cpu_set_t* set, size_t bytes, size_t most) {
    for (size_t i = 0; i < most && found < out.size(); ++i)
      if (CPU_ISSET_S(i, bytes, set)) out[found++] = static_cast<uint32_t>(i);
  });
  out.resize(found);
  return out;
}

bool pin_thread(uint32_t processor) {
  cpu_set_t* set = CPU_ALLOC(processor + 1);
  if (!set) return false;
  const size_t bytes = CPU_ALLOC_SIZE(processor + 1);
  CPU_ZERO_S(bytes, set);
  CPU_SET_S(processor, bytes, set);
  const bool done = sched_setaffinity(0, bytes, set) == 0;
  CPU_FREE(set);
  return done;
}

std::string processor_text() {
  std::ifstream file("/proc/cpuinfo");
  std::string out, line;
  // The block of the first processor ends with an empty line.
  while (std::getline(file, line) && !line.empty())
    for (const std::string_view key : {"vendor_id", "cpu family", "model", "model name", "stepping",
                                       "CPU implementer", "CPU part", "CPU variant"}) {
      const size_t colon = line.find(": ");
      if (colon == std::string::npos || !line.starts_with(key) ||
          line.find_first_not_of(" \t", key.size()) != colon)
        continue;
      out += (out.empty() ? "" : " ") + line.substr(colon + 2);
    }
  for (const int level : {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE}) {
    const long bytes = ::sysconf(level);
    out += (level == _SC_LEVEL1_DCACHE_SIZE ? ", caches " : "/") +
           std::to_string(std::max(bytes, 0L) >> 10);
  }
  return out + " KiB";
}

uint64_t available_memory(const std::string& root) {
  std::ifstream file(root + "/proc/meminfo");  // lines of Key: number kB
  uint64_t bytes = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    if (words >> line && line == "MemAvailable:" && words >> bytes) bytes *= 1024;
  }
  return tighter(bytes, tightest(root, "memory", memory_v1, memory_v2));
}

double memory_stalled(const std::string& root) {
  const uint64_t least =
      tighter(calm(root + "/proc/pressure/memory"), tightest(root, "memory", calm_v1, calm_v2));
  return least == 0 ? 0 : static_cast<double>(10001 - least) / 100;
}

uint64_t monotonic_ns() { return read_clock(CLOCK_MONOTONIC); }

uint64_t recent_ns() { return read_clock(CLOCK_MONOTONIC_COARSE); }

}  // namespace pfrt::os
