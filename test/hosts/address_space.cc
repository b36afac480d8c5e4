// SPDX-License-Identifier: Apache-2.0
//
// A host that may use little more memory than it has when it starts to work: work succeeds, or
// fails with a status.
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <new>

#include "test/hosts/host.h"

namespace {

uint64_t bytes_mapped() {
  unsigned long pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%lu", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

constexpr uint64_t kKib = 1024;
constexpr int kRanOut = 3;

}  // namespace

int main(int argc, char** argv) {
  const host::Opened opened;  // with the plug-ins loaded: what they do when they load is theirs
  host::work("1");
  int failed = 0, ran_out = 0, worked = 0;
  for (uint64_t more = 0; more <= 512 * kKib * kKib; more = more ? more * 2 : 16 * kKib) {
    const int code = host::in_child([&] {
      const rlimit limit{bytes_mapped() + more, RLIM_INFINITY};
      setrlimit(RLIMIT_AS, &limit);
      try {
        pfrt_code outcome = PFRT_CODE_OK;
        const std::string results = host::try_work(&outcome, "1");
        if (outcome == PFRT_CODE_OUT_OF_MEMORY) return kRanOut;
        if (outcome == PFRT_CODE_OK)
          return host::compare_results("little memory", argc, argv, results);
        std::fprintf(stderr, "code %u: %s\n", outcome, results.c_str());
        return 1;
      } catch (const std::bad_alloc&) {  // the host's own
        return kRanOut;
      }
    });
    if (code == kRanOut) ++ran_out;
    if (code == 0) ++worked;
    if (code == 0 || code == kRanOut) continue;
    std::fprintf(stderr, "with %llu KiB more it ended with %d\n",
                 static_cast<unsigned long long>(more / kKib), code);
    failed = 1;
  }
  if (worked == 0) failed = 1;
  std::printf("%d ran out of memory, %d worked\n", ran_out, worked);
  return failed;
}
