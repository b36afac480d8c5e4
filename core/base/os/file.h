// SPDX-License-Identifier: Apache-2.0
//
// Files as read-only bytes, and the limits on files beside a model that the model may open. Only
// regular files are read: a pipe or a device may never answer. MappedFile is immutable and shared.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/os/beside.h"
#include "core/base/os/descriptor.h"
#include "core/base/os/folder.h"
#include "core/base/os/mapping_guard.h"
#include "core/base/status.h"

namespace pfrt::os {

class MappedFile {
 public:
  // |guarded|: the file is mapped, and a fault on the mapping is handled and marks the file's
  // health (mapping_guard.h). Otherwise the bytes are a copy, which takes their size in memory.
  static Result<std::shared_ptr<MappedFile>> open(const std::string& path, bool guarded);
  // Opens a file only if check_private accepts it, and not through a link.
  static Result<std::shared_ptr<MappedFile>> open_private(const std::string& path, bool guarded);
  // Opens the file that the model at |model| calls |location|: relative to the model's folder,
  // which it may not leave by "..", an absolute path or, as |confine| says, a link: INVALID_MODEL.
  static Result<std::shared_ptr<MappedFile>> open_beside(const std::string& model,
                                                         const std::string& location,
                                                         Confine confine, bool guarded);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const void* data() const { return data_; }
  uint64_t size() const { return size_; }
  const std::string& path() const { return path_; }
  // The state of the file when it was opened.
  const FileStamp& stamp() const { return stamp_; }
  // nullptr for an empty file and for a copy.
  const std::shared_ptr<FileHealth>& health() const { return health_; }

 private:
  MappedFile() = default;
  static Result<std::shared_ptr<MappedFile>> of(Descriptor fd, std::string path, bool guarded);
  void* data_ = nullptr;
  uint64_t size_ = 0;
  std::string path_;
  FileStamp stamp_;
  std::shared_ptr<FileHealth> health_;
};

}  // namespace pfrt::os
