// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/machine/machine.h"

#include <sched.h>
#include <sys/auxv.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>
#include <sstream>

namespace cli {
namespace {

constexpr const char* kIsa[] = {"sse4_2",      "avx",         "avx2",        "fma",      "f16c",
                                "avx_vnni",    "avx512f",     "avx512bw",    "avx512dq", "avx512vl",
                                "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_int8",
                                "amx_bf16",    "amx_fp16"};

// Returns the text after "key : " on its first line in /proc/cpuinfo.
std::string cpuinfo(const std::string& key) {
  std::ifstream in("/proc/cpuinfo");
  std::string line;
  while (std::getline(in, line)) {
    const size_t colon = line.find(':');
    if (line.compare(0, key.size(), key) == 0 && colon != std::string::npos &&
        colon + 2 <= line.size()) {
      return line.substr(colon + 2);
    }
  }
  return {};
}

std::optional<double> quota_of(const std::string& limit, const std::string& period) {
  double limit_us = 0;
  double period_us = 0;
  if (!(std::istringstream(limit) >> limit_us) || !(std::istringstream(period) >> period_us))
    return std::nullopt;
  if (limit_us <= 0 || period_us <= 0) return std::nullopt;
  return limit_us / period_us;
}

std::string first_line(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

// Returns the smallest quota from this process's cgroup up to the root.
std::optional<double> cpu_quota() {
  std::optional<double> smallest;
  const auto take = [&smallest](std::optional<double> quota) {
    if (quota) smallest = std::min(*quota, smallest.value_or(*quota));
  };
  std::ifstream groups("/proc/self/cgroup");
  std::string line;
  while (std::getline(groups, line)) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    const bool unified = controllers.empty();
    if (!unified && controllers.find("cpu") == std::string::npos) continue;
    for (;; path.resize(path.find_last_of('/'))) {
      if (path == "/") path.clear();
      if (unified) {
        std::istringstream max(first_line("/sys/fs/cgroup" + path + "/cpu.max"));
        std::string limit, period;
        max >> limit >> period;
        take(quota_of(limit, period));
      } else {
        std::string folder = "/sys/fs/cgroup/";
        folder.append(controllers).append(path);
        take(quota_of(first_line(folder + "/cpu.cfs_quota_us"),
                      first_line(folder + "/cpu.cfs_period_us")));
      }
      if (path.find('/') == std::string::npos) break;
    }
  }
  return smallest;
}

}  // namespace

Machine read_machine() {
  Machine machine;
  machine.cpu = cpuinfo("model name");
  std::istringstream flags(cpuinfo("flags"));
  std::set<std::string> present;
  for (std::string flag; flags >> flag;) present.insert(flag);
  for (const char* name : kIsa) {
    if (present.count(name) != 0) machine.isa.emplace_back(name);
  }
  machine.online = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  cpu_set_t set;
  CPU_ZERO(&set);
  const bool known = ::sched_getaffinity(0, sizeof(set), &set) == 0;
  machine.usable = known ? CPU_COUNT(&set) : machine.online;
  machine.quota = cpu_quota();
  struct sysinfo info {};
  if (::sysinfo(&info) == 0) machine.memory = static_cast<uint64_t>(info.totalram) * info.mem_unit;
  utsname system{};
  if (::uname(&system) == 0) machine.system = std::string(system.sysname) + " " + system.release;
  return machine;
}

int default_threads(const Machine& machine) {
  int threads = machine.usable;
  if (machine.quota) threads = std::min(threads, static_cast<int>(std::ceil(*machine.quota)));
  return std::max(threads, 1);
}

std::string isa_text(const Machine& machine) {
  std::string out;
  for (const std::string& name : machine.isa) out += (out.empty() ? "" : " ") + name;
  return out.empty() ? "none of the known extensions" : out;
}

std::vector<std::string> machine_notes(const Machine& machine, const std::string& cap) {
  const bool tiles =
      std::find(machine.isa.begin(), machine.isa.end(), "amx_tile") != machine.isa.end();
  if (!tiles || (!cap.empty() && cap != "amx")) return {};
  const unsigned long least = ::getauxval(AT_MINSIGSTKSZ);
  return {"once kernels have used AMX tiles, the system refuses a sigaltstack of fewer than " +
          (least > 0 ? std::to_string(least) : "about 11,000") +
          " bytes in every thread of the process; PFRT_ISA=avx512_bf16 leaves tiles alone"};
}

}  // namespace cli
