// SPDX-License-Identifier: Apache-2.0
//
// Files in a folder that several processes share: stamps that tell one state of a file from
// another, and a lock. Thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/os/descriptor.h"
#include "core/base/status.h"

namespace pfrt::os {

// A file's identity and state. Every write to a file changes |changed_ns|, which nobody can set.
struct FileStamp {
  uint64_t device = 0, inode = 0, bytes = 0;
  int64_t modified_ns = 0, changed_ns = 0;  // since 1970
  bool operator==(const FileStamp&) const = default;
};

Result<FileStamp> stamp_of(const std::string& path);
Result<FileStamp> stamp_of(int fd, const std::string& path);

// Checks that the file open as |fd| is of this process's user, and that nobody else may write to
// it. |path| is for the message; another file may be there by now.
Status check_private(int fd, const std::string& path);
// Checks that the folder is this user's or the system's, so that no other user decides what is in
// it.
Status check_own_folder(const std::string& path);

// Makes |path| and the missing folders above it, for this user alone.
Status make_folders(const std::string& path);

// Sets its last access and modification to now. Failure does not matter.
void touch(const std::string& path);
bool remove_file(const std::string& path);

// The lock is held until the result is destroyed, or the process ends. UNSUPPORTED where the file
// system knows no locks, BUSY when another process has held it for |wait_ms|.
Result<Descriptor> lock_file(const std::string& path, uint32_t wait_ms);

// The system's clock, which may be set back.
int64_t system_ns();
// A number that stays until the system starts anew; 0 where it does not say.
uint64_t boot_number();

}  // namespace pfrt::os
