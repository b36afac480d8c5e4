// SPDX-License-Identifier: Apache-2.0
#include "core/base/os/folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/base/os/io_error.h"

namespace pfrt::os {
namespace {

int64_t ns_of(const timespec& t) {
  return static_cast<int64_t>(t.tv_sec) * 1'000'000'000 + static_cast<int64_t>(t.tv_nsec);
}

FileStamp stamp_from(const struct stat& info) {
  return {info.st_dev, info.st_ino, static_cast<uint64_t>(info.st_size), ns_of(info.st_mtim),
          ns_of(info.st_ctim)};
}

}  // namespace

Result<FileStamp> stamp_of(const std::string& path) {
  PFRT_TRY(check_path("looking at", path));
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return io_error("looking at", path, errno);
  return stamp_from(info);
}

Result<FileStamp> stamp_of(int fd, const std::string& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return io_error("looking at", path, errno);
  return stamp_from(info);
}

Status check_private(int fd, const std::string& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return io_error("looking at", path, errno);
  if (info.st_uid == ::geteuid() && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0) return {};
  return error(Code::kIO, "opening '", path,
               "': it is no file of this user's, or others may write to it");
}

Status check_own_folder(const std::string& path) {
  PFRT_TRY(check_path("looking at", path));
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return io_error("looking at", path, errno);
  if (info.st_uid == ::geteuid() || info.st_uid == 0) return {};
  return error(Code::kIO, "using the folder '", path, "': it belongs to user ", info.st_uid,
               ", this process is of user ", ::geteuid(), "; name a folder of its own");
}

Status make_folders(const std::string& path) {
  PFRT_TRY(check_path("making the folder", path));
  for (size_t end = 0; end != std::string::npos;) {
    end = path.find('/', end + 1);
    const std::string folder = path.substr(0, end);
    if (::mkdir(folder.c_str(), 0700) == 0) continue;
    const int code = errno;
    struct stat info {};
    if (::stat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) continue;
    return io_error("making the folder", folder, code == EEXIST ? ENOTDIR : code);
  }
  return {};
}

void touch(const std::string& path) { ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0); }

bool remove_file(const std::string& path) { return ::unlink(path.c_str()) == 0; }

Result<Descriptor> lock_file(const std::string& path, uint32_t wait_ms) {
  Descriptor fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (fd.get() < 0) return io_error("opening", path, errno);
  constexpr uint32_t kStepMs = 5;
  for (uint32_t waited = 0;; waited += kStepMs) {
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
    if (errno != EWOULDBLOCK && errno != EINTR)
      return error(Code::kUNSUPPORTED, "locking '", path, "': the file system knows no locks");
    if (waited >= wait_ms)
      return error(Code::kBUSY, "locking '", path, "': another process has held it for ", wait_ms,
                   " ms");
    const timespec step{0, kStepMs * 1'000'000};
    ::nanosleep(&step, nullptr);
  }
}

int64_t system_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return ns_of(now);
}

uint64_t boot_number() {
  const int fd = ::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[36] = {};
  const ssize_t got = ::read(fd, text, sizeof text);
  ::close(fd);
  uint64_t number = 0;
  for (ssize_t i = 0; i < got; ++i) number = number * 31 + static_cast<unsigned char>(text[i]);
  return number;
}

}  // namespace pfrt::os
