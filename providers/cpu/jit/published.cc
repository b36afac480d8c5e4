// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/jit/published.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>

#include "core/base/os/variable.h"

namespace pfrt::cpu {
namespace {

// Writes a file whose path |format| and |values| give, as for printf. Each call is a single write,
// so that lines of several threads do not mix. It does not follow a link that someone left in a
// shared folder, and does not wait for a reader of a pipe there.
template <typename... Values>
void write_file(int flags, const void* bytes, size_t size, const char* format, Values... values) {
  char path[4096];
  const int length = std::snprintf(path, sizeof path, format, values...);
  if (length < 0 || static_cast<size_t>(length) >= sizeof path) return;
  const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | flags, 0644);
  if (fd < 0) return;
  if (write(fd, bytes, size) < 0) {
  }
  close(fd);
}

}  // namespace

void publish(std::string_view name, const void* code, size_t bytes) noexcept {
  const int length = static_cast<int>(name.size());
  if (const char* const folder = os::variable("PFRT_JIT_DUMP"); *folder != '\0')
    write_file(O_TRUNC, code, bytes, "%s/%.*s.bin", folder, length, name.data());
  if (std::string_view(os::variable("PFRT_JIT_PERF")) != "1") return;
  char line[256];
  const int size = std::snprintf(line, sizeof line, "%zx %zx %.*s\n",
                                 reinterpret_cast<size_t>(code), bytes, length, name.data());
  if (size > 0 && static_cast<size_t>(size) < sizeof line)
    write_file(O_APPEND, line, static_cast<size_t>(size), "/tmp/perf-%d.map", getpid());
}

}  // namespace pfrt::cpu
