// SPDX-License-Identifier: Apache-2.0
//
// Files: read-only mappings, opening confined to a folder, and whole-file replacement. Nothing but
// this and mapping_guard.h calls the operating system for them. MappedFile is immutable and shared;
// AtomicFile belongs to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/os/mapping_guard.h"
#include "core/base/status.h"

namespace pfrt::os {

class MappedFile {
 public:
  // |guarded|: a fault on the mapping is handled and marks the file's health (mapping_guard.h).
  static Result<std::shared_ptr<MappedFile>> open(const std::string& path, bool guarded);
  // |relative| may not leave |folder|, by "..", an absolute path or a symbolic link: INVALID_MODEL.
  static Result<std::shared_ptr<MappedFile>> open_beneath(const std::string& folder,
                                                          const std::string& relative,
                                                          bool guarded);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const void* data() const { return data_; }
  uint64_t size() const { return size_; }
  const std::string& path() const { return path_; }
  // nullptr for an empty file.
  const std::shared_ptr<FileHealth>& health() const { return health_; }

 private:
  MappedFile() = default;
  static Result<std::shared_ptr<MappedFile>> map(int fd, std::string path, bool guarded);
  void* data_ = nullptr;
  uint64_t size_ = 0;
  std::string path_;
  std::shared_ptr<FileHealth> health_;
};

// Writes beside |path| and moves into place on commit, so that |path| is the old file or the new
// one, whole. Without commit the temporary file goes away.
class AtomicFile {
 public:
  static Result<std::unique_ptr<AtomicFile>> create(const std::string& path);
  ~AtomicFile();
  // DATA_LOSS when |data| is in a mapped file that has lost it.
  Status write(const void* data, uint64_t size);
  Status commit();
  uint64_t written() const { return written_; }

 private:
  AtomicFile() = default;
  int fd_ = -1;
  uint64_t written_ = 0;
  std::string path_, temporary_;
};

// One write, so that lines of several threads do not mix; nothing is done when stderr is gone.
void write_to_stderr(std::string_view line);

// The folder part of |path| ("." when there is none), and the name part.
std::string folder_of(const std::string& path);
std::string name_of(const std::string& path);

}  // namespace pfrt::os
