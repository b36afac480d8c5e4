// SPDX-License-Identifier: Apache-2.0
//
// Whole-file replacement. An AtomicFile belongs to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/status.h"

namespace pfrt::os {

// Writes beside |path| and moves into place on commit, so that |path| is the old file or the new
// one, unbroken. Without commit the temporary file is removed; one that a killed process left
// behind is removed by the next create of the same path. A lock on the temporary file tells it from
// that of a writer still at work.
class AtomicFile {
 public:
  // |shared|: the umask decides the mode; else the file is for this user alone.
  static Result<std::unique_ptr<AtomicFile>> create(const std::string& path, bool shared = true);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  // DATA_LOSS when |data| is in a mapped file that has lost it.
  Status write(const void* data, uint64_t size);
  // |durable|: the file is also on the disk, and so intact after a loss of power.
  Status commit(bool durable = true);
  uint64_t written() const { return written_; }

 private:
  AtomicFile() = default;
  int fd_ = -1;
  uint64_t written_ = 0;
  std::string path_, temporary_;
};

// Removes the files that killed writers of any file in |folder| left behind.
void remove_left_over(const std::string& folder);

}  // namespace pfrt::os
