// SPDX-License-Identifier: Apache-2.0
//
// Hosts that the system gives fewer threads than they ask for: none or a few, by a limit of
// processes, or none beyond some address space. Work takes what threads there are, or fails with a
// status.
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <new>

#include "test/hosts/host.h"

namespace {

constexpr int kRefused = 3;
constexpr rlim_t kMib = 1024 * 1024;

// The superuser has no limit of processes, so this becomes a user who has no process yet, but who
// may still read the superuser's files.
bool become_countable() {
  if (geteuid() != 0) return true;
  if (setresuid(54'321, 0, 0) != 0) return false;
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2] = {};
  if (syscall(SYS_capget, &header, sets) != 0) return false;
  for (const unsigned capability : {unsigned{CAP_SYS_RESOURCE}, unsigned{CAP_SYS_ADMIN}})
    sets[0].effective &= ~(1u << capability);
  return syscall(SYS_capset, &header, sets) == 0;
}

int with_processes(rlim_t most, int argc, char** argv) {
  return host::in_child([&] {
    const rlimit limit{most, most};
    if (!become_countable() || setrlimit(RLIMIT_NPROC, &limit) != 0) return host::kSkip;
    return host::compare_results("few processes", argc, argv, host::work("8"));
  });
}

int with_address_space(rlim_t mib, int argc, char** argv) {
  return host::in_child([&] {
    const rlimit limit{mib * kMib, mib * kMib};
    setrlimit(RLIMIT_AS, &limit);
    try {
      pfrt_code outcome = PFRT_CODE_OK;
      const std::string results = host::try_work(&outcome, "8");
      if (outcome == PFRT_CODE_OK)
        return host::compare_results("little address space", argc, argv, results);
      if (outcome != PFRT_CODE_INTERNAL && !results.empty()) return kRefused;
      std::fprintf(stderr, "code %u: '%s'\n", outcome, results.c_str());
      return 1;
    } catch (const std::bad_alloc&) {  // the host's own
      return kRefused;
    }
  });
}

}  // namespace

int main(int argc, char** argv) {
  int failed = 0, worked = 0, refused = 0;
  for (rlim_t most = 1; most <= 4; ++most) {
    const int code = with_processes(most, argc, argv);
    if (code == 0 || code == host::kSkip) continue;
    std::fprintf(stderr, "with %d processes it ended with %d\n", static_cast<int>(most), code);
    failed = 1;
  }
  for (rlim_t mib = 14; mib <= 200; ++mib) {
    const int code = with_address_space(mib, argc, argv);
    worked += code == 0;
    refused += code == kRefused;
    if (code == 0 || code == kRefused) continue;
    std::fprintf(stderr, "with %d MiB it ended with %d\n", static_cast<int>(mib), code);
    failed = 1;
  }
  std::printf("%d worked, %d ended with a status\n", worked, refused);
  return failed != 0 || worked == 0 || refused == 0 ? 1 : 0;
}
