// SPDX-License-Identifier: Apache-2.0
#include "core/base/os/regular_file.h"

#include <sys/stat.h>

#include <cerrno>

#include "core/base/os/io_error.h"

namespace pfrt::os {
namespace {

Status not_regular(const std::string& path, mode_t mode) {
  const char* what = S_ISDIR(mode)                    ? "a folder"
                     : S_ISFIFO(mode)                 ? "a pipe"
                     : S_ISSOCK(mode)                 ? "a socket"
                     : S_ISCHR(mode) || S_ISBLK(mode) ? "a device"
                                                      : "something else";
  return error(Code::kIO, "reading '", path, "': it is ", what,
               ", only regular files are read; copy its bytes to a file first, or give them as "
               "memory");
}

}  // namespace

Result<uint64_t> regular_size(int fd, const std::string& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return io_error("reading", path, errno);
  if (!S_ISREG(info.st_mode)) return not_regular(path, info.st_mode);
  return static_cast<uint64_t>(info.st_size);
}

Result<Descriptor> open_regular(const std::string& path, uint64_t* size, int flags) {
  PFRT_TRY(check_path("opening", path));
  Descriptor fd(::open(path.c_str(), kReadFlags | flags));
  // A socket cannot be opened at all.
  if (fd.get() < 0 && errno == ENXIO) return not_regular(path, S_IFSOCK);
  if (fd.get() < 0) return io_error("opening", path, errno);
  PFRT_ASSIGN(*size, regular_size(fd.get(), path));
  return fd;
}

}  // namespace pfrt::os
