// SPDX-License-Identifier: Apache-2.0
#include "core/base/os/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string_view>
#include <utility>

#include "core/base/os/cpu.h"
#include "core/base/os/file.h"
#include "core/base/os/io_error.h"
#include "core/base/os/library.h"
#include "core/base/os/mapping_guard.h"
#include "core/base/os/path.h"
#include "core/base/os/regular_file.h"

namespace pfrt::os {
namespace {

// A temporary file is "<name>.pfrt-<16 hexadecimal digits>", with a long name cut.
constexpr size_t kLongestStem = 200;  // with the rest within the 255 bytes of a name
constexpr size_t kDigits = 16;
constexpr std::string_view kMark = ".pfrt-";

std::string temporary_stem(const std::string& path) {
  return name_of(path).substr(0, kLongestStem).append(kMark);
}

std::string random_digits() {
  uint64_t random = 0;
  if (::getrandom(&random, sizeof random, GRND_NONBLOCK) < 0) random = monotonic_ns();
  char digits[kDigits];
  const auto end = std::to_chars(digits, digits + kDigits, random, 16).ptr;
  const std::string text(digits, end);
  return std::string(kDigits - text.size(), '0') + text;
}

// An empty |stem| stands for any file.
bool is_temporary(std::string_view name, std::string_view stem) {
  if (name.size() < kDigits || (!stem.empty() && name.size() != stem.size() + kDigits))
    return false;
  const size_t digits = name.size() - kDigits;
  return name.substr(0, digits).ends_with(stem.empty() ? kMark : stem) &&
         name.find_first_not_of("0123456789abcdef", digits) == std::string_view::npos;
}

// Whether the file open as |fd| still is the one called |path|.
bool is_at(int fd, const std::string& path) {
  struct stat open {
  }, named{};
  return ::fstat(fd, &open) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

// Removes temporary files whose writers are gone: their locks went with them.
void remove_temporaries(const std::string& folder, std::string_view stem) {
  for (const std::string& name : list_folder(folder)) {
    if (!is_temporary(name, stem)) continue;
    std::string left = folder;
    left.append("/").append(name);
    const int fd = ::open(left.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) continue;
    struct stat info {};
    if (::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && ::flock(fd, LOCK_EX | LOCK_NB) == 0 &&
        is_at(fd, left))
      ::unlink(left.c_str());
    ::close(fd);
  }
}

// Opens a new, locked file. mkstemp would not do: the mode is left to the umask, which only the
// kernel can read without changing it.
int open_new(const std::string& path, bool shared) {
  const int fd =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, shared ? 0666 : 0600);
  if (fd < 0) return fd;
  // Another writer may have taken the file for a leftover before it was locked. Where the file
  // system knows no locks, nobody removes anything.
  const bool taken = ::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  if (!taken && is_at(fd, path)) return fd;
  ::close(fd);
  errno = EEXIST;
  return -1;
}

}  // namespace

Result<std::unique_ptr<AtomicFile>> AtomicFile::create(const std::string& path, bool shared) {
  constexpr int kTries = 100;
  PFRT_TRY(check_path("writing", path));
  remove_temporaries(folder_of(path), temporary_stem(path));
  auto file = std::unique_ptr<AtomicFile>(new AtomicFile);
  file->path_ = path;
  const std::string stem = folder_of(path) + "/" + temporary_stem(path);
  for (int i = 0; i < kTries; ++i) {
    file->temporary_ = stem + random_digits();
    file->fd_ = open_new(file->temporary_, shared);
    if (file->fd_ >= 0 || errno != EEXIST) break;
  }
  // The descriptor is moved above the standard streams: if the host has closed these, the file must
  // not get what others print.
  if (file->fd_ >= 0 && file->fd_ <= STDERR_FILENO) {
    const int low = file->fd_;
    file->fd_ = ::fcntl(low, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    const int code = errno;
    ::close(low);
    if (file->fd_ < 0) return io_error("writing", path, code);
  }
  if (file->fd_ < 0) {
    const int code = errno;
    file->temporary_.clear();
    return io_error("writing", path, code);
  }
  return file;
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  if (fd_ >= 0) ::close(fd_);
}

Status AtomicFile::write(const void* data, uint64_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t n =
        ::write(fd_, at, static_cast<size_t>(std::min<uint64_t>(size, uint64_t{1} << 30)));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EFAULT)
      if (const auto health = health_of(at)) {
        health->lose();
        return health->status().prepend(message("writing '", path_, "'"));
      }
    if (n < 0) return io_error("writing", path_, errno);
    at += n;
    size -= static_cast<uint64_t>(n);
    written_ += static_cast<uint64_t>(n);
  }
  return {};
}

// The file stays open, and so locked, until it has its name.
Status AtomicFile::commit(bool durable) {
  if (durable && ::fsync(fd_) != 0) return io_error("writing", path_, errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return io_error("replacing", path_, errno);
  temporary_.clear();
  ::close(std::exchange(fd_, -1));
  return {};
}

void remove_left_over(const std::string& folder) { remove_temporaries(folder, {}); }

}  // namespace pfrt::os
