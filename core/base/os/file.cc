// SPDX-License-Identifier: Apache-2.0
#include "core/base/os/file.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/base/os/cpu.h"

namespace pfrt::os {
namespace {

std::string reason(int code) {
  char text[128];
  return strerror_r(code, text, sizeof text);
}

Status io_error(std::string_view what, const std::string& path, int code) {
  const Code kind = code == ENOENT || code == ENOTDIR ? Code::kNOT_FOUND
                    : code == ENOMEM                  ? Code::kOUT_OF_MEMORY
                                                      : Code::kIO;
  return error(kind, what, " '", path, "': ", reason(code));
}

}  // namespace

Result<std::shared_ptr<MappedFile>> MappedFile::open(const std::string& path, bool guarded) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return io_error("opening", path, errno);
  return map(fd, path, guarded);
}

Result<std::shared_ptr<MappedFile>> MappedFile::open_beneath(const std::string& folder,
                                                             const std::string& relative,
                                                             bool guarded) {
  const auto leaves = [&] {
    return error(Code::kINVALID_MODEL, "opening external data '", relative, "' of a model in '",
                 folder,
                 "': the path leaves the model's folder; put the file beside the model and use a "
                 "relative name");
  };
  if (relative.empty() || relative.find('\0') != std::string::npos)
    return error(Code::kINVALID_MODEL, "opening external data of a model in '", folder,
                 "': empty or malformed file name");
  const int dir = ::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (dir < 0) return io_error("opening folder", folder, errno);
  open_how how{};
  how.flags = O_RDONLY | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  long fd = ::syscall(SYS_openat2, dir, relative.c_str(), &how, sizeof how);
  int code = errno;
  ::close(dir);
  if (fd < 0 && (code == ENOSYS || code == EPERM)) {
    // A kernel or sandbox without openat2: compare resolved paths instead.
    if (relative.front() == '/') return leaves();
    char* base = ::realpath(folder.c_str(), nullptr);
    char* full = ::realpath((folder + "/" + relative).c_str(), nullptr);
    code = errno;
    const std::string prefix = base ? std::string(base) + "/" : "";
    const bool inside = base && full && std::string_view(full).substr(0, prefix.size()) == prefix;
    const bool found = full != nullptr;
    fd = inside ? ::open(full, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
    std::free(base);
    std::free(full);
    if (found && !inside) return leaves();
  }
  if (fd < 0 && (code == EXDEV || code == ELOOP)) return leaves();
  if (fd < 0) return io_error("opening external data", folder + "/" + relative, code);
  return map(static_cast<int>(fd), folder + "/" + relative, guarded);
}

Result<std::shared_ptr<MappedFile>> MappedFile::map(int fd, std::string path, bool guarded) {
  struct Closer {
    int fd;
    ~Closer() {
      if (fd >= 0) ::close(fd);
    }
  } closer{fd};
  struct stat info {};
  if (::fstat(fd, &info) != 0) return io_error("reading", path, errno);
  if (!S_ISREG(info.st_mode)) return error(Code::kIO, "reading '", path, "': not a regular file");
  auto file = std::shared_ptr<MappedFile>(new MappedFile);
  file->path_ = std::move(path);
  file->size_ = static_cast<uint64_t>(info.st_size);
  if (file->size_ == 0) return file;
  file->health_ = std::make_shared<FileHealth>(file->size_, file->path_);
  void* data = ::mmap(nullptr, static_cast<size_t>(file->size_), PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED) return io_error("mapping", file->path_, errno);
  file->data_ = data;
  file->health_->watch(std::exchange(closer.fd, -1));
  add_mapping(data, file->size_, file->health_, guarded);
  return file;
}

MappedFile::~MappedFile() {
  if (!data_) return;
  remove_mapping(data_);
  ::munmap(data_, static_cast<size_t>(size_));
}

Result<std::unique_ptr<AtomicFile>> AtomicFile::create(const std::string& path) {
  constexpr int kTries = 100;
  auto file = std::unique_ptr<AtomicFile>(new AtomicFile);
  file->path_ = path;
  // Not mkstemp: the mode is left to the umask, which only the kernel can read without changing it.
  for (int i = 0; i < kTries; ++i) {
    uint64_t random = 0;
    if (::getrandom(&random, sizeof random, GRND_NONBLOCK) < 0) random = monotonic_ns();
    file->temporary_ = message(path, ".", random % 1'000'000'000);
    file->fd_ = ::open(file->temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file->fd_ >= 0 || errno != EEXIST) break;
  }
  // Where the host has closed its standard streams, what others print must not land in the file.
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
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
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

Status AtomicFile::commit() {
  if (::fsync(fd_) != 0) return io_error("writing", path_, errno);
  const int fd = fd_;
  fd_ = -1;
  if (::close(fd) != 0) return io_error("writing", path_, errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return io_error("replacing", path_, errno);
  temporary_.clear();
  return {};
}

void write_to_stderr(std::string_view line) {
  [[maybe_unused]] const ssize_t n = ::write(STDERR_FILENO, line.data(), line.size());
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string name_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

}  // namespace pfrt::os
