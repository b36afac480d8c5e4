// SPDX-License-Identifier: Apache-2.0
//
// What a folder that several processes keep files in takes: what tells one state of a file from
// another, and a lock. Thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/os/descriptor.h"
#include "core/base/status.h"

namespace pfrt::os {

// A file's identity and state. Whoever writes to a file changes |changed_ns|, which nobody can set.
struct FileStamp {
  uint64_t device = 0, inode = 0, bytes = 0;
  int64_t modified_ns = 0, changed_ns = 0;  // since 1970
  bool operator==(const FileStamp&) const = default;
};

Result<FileStamp> stamp_of(const std::string& path);
Result<FileStamp> stamp_of(int fd, const std::string& path);

// That the file open as |fd| is of this process's user, and nobody else may write to it. |path| is
// for the message; what stands there may be another file by now.
Status check_private(int fd, const std::string& path);
// That the folder is of this user, or of the system's, so that no other user says what is in it.
Status check_own_folder(const std::string& path);

// |path| and the folders above it that are missing, for this user alone.
Status make_folders(const std::string& path);

// Its last access and modification are now. Failure does not matter.
void touch(const std::string& path);
bool remove_file(const std::string& path);

// Held until it is destroyed, or the process ends. UNSUPPORTED where the file system knows no
// locks, BUSY when another process has held it for |wait_ms|.
Result<Descriptor> lock_file(const std::string& path, uint32_t wait_ms);

// The system's clock, which may be set back.
int64_t system_ns();
// The same until the system starts anew; 0 where it does not say.
uint64_t boot_number();

}  // namespace pfrt::os
