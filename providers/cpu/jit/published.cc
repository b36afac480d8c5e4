// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/jit/published.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace pfrt::cpu {
namespace {

// One write each, so that lines of several threads do not mix. A link that someone left in a shared
// folder is not followed.
void write_file(const std::string& path, int flags, std::string_view bytes) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | flags, 0644);
  if (fd < 0) return;
  if (write(fd, bytes.data(), bytes.size()) < 0) {
  }
  close(fd);
}

}  // namespace

void publish(const std::string& name, const void* code, size_t bytes) {
  if (const char* folder = std::getenv("PFRT_JIT_DUMP"); folder != nullptr && *folder != '\0')
    write_file(std::string(folder) + "/" + name + ".bin", O_TRUNC,
               {static_cast<const char*>(code), bytes});
  const char* const perf = std::getenv("PFRT_JIT_PERF");
  if (perf == nullptr || std::string_view(perf) != "1") return;
  char line[256];
  const int length = std::snprintf(line, sizeof line, "%zx %zx %s\n",
                                   reinterpret_cast<size_t>(code), bytes, name.c_str());
  if (length > 0 && static_cast<size_t>(length) < sizeof line)
    write_file("/tmp/perf-" + std::to_string(getpid()) + ".map", O_APPEND,
               {line, static_cast<size_t>(length)});
}

}  // namespace pfrt::cpu
