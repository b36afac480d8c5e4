// SPDX-License-Identifier: Apache-2.0
#include "core/base/os/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/base/os/beside.h"
#include "core/base/os/io_error.h"
#include "core/base/os/path.h"
#include "core/base/os/regular_file.h"

namespace pfrt::os {
namespace {

Status read_all(int fd, char* to, uint64_t size, const std::string& path) {
  constexpr uint64_t kPiece = uint64_t{1} << 30;
  for (uint64_t at = 0; at < size;) {
    const auto wanted = static_cast<size_t>(std::min(kPiece, size - at));
    const ssize_t got = ::pread(fd, to + at, wanted, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_error("reading", path, errno);
    if (got == 0)
      return error(Code::kDATA_LOSS, "file '", path, "' of ", size,
                   " bytes was cut short while it was read; restore it and load the model again");
    at += static_cast<uint64_t>(got);
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<MappedFile>> MappedFile::open(const std::string& path, bool guarded) {
  uint64_t size = 0;
  PFRT_ASSIGN(Descriptor fd, open_regular(path, &size));
  return of(std::move(fd), path, guarded);
}

Result<std::shared_ptr<MappedFile>> MappedFile::open_private(const std::string& path,
                                                             bool guarded) {
  uint64_t size = 0;
  PFRT_ASSIGN(Descriptor fd, open_regular(path, &size, O_NOFOLLOW));
  PFRT_TRY(check_private(fd.get(), path));
  return of(std::move(fd), path, guarded);
}

Result<std::shared_ptr<MappedFile>> MappedFile::open_beside(const std::string& model,
                                                            const std::string& location,
                                                            Confine confine, bool guarded) {
  PFRT_ASSIGN(Descriptor fd, beside(model, location, confine));
  return of(std::move(fd), folder_of(model) + "/" + location, guarded);
}

Result<std::shared_ptr<MappedFile>> MappedFile::of(Descriptor fd, std::string path, bool guarded) {
  auto file = std::shared_ptr<MappedFile>(new MappedFile);
  file->path_ = std::move(path);
  PFRT_ASSIGN(file->size_, regular_size(fd.get(), file->path_));
  PFRT_ASSIGN(file->stamp_, stamp_of(fd.get(), file->path_));
  if (file->size_ == 0) return file;
  const auto size = static_cast<size_t>(file->size_);
  // Pages of a copy that are dropped come back only where memory is shared.
  void* data =
      guarded ? ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0)
              : ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return io_error("mapping", file->path_, errno);
  file->data_ = data;
  if (!guarded) {
    PFRT_TRY(read_all(fd.get(), static_cast<char*>(data), file->size_, file->path_));
    ::mprotect(data, size, PROT_READ);
    return file;
  }
  file->health_ = std::make_shared<FileHealth>(file->size_, file->path_);
  file->health_->watch(fd.release());
  add_mapping(data, file->size_, file->health_);
  return file;
}

MappedFile::~MappedFile() {
  if (!data_) return;
  if (health_) remove_mapping(data_);
  ::munmap(data_, static_cast<size_t>(size_));
}

}  // namespace pfrt::os
