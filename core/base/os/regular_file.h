// SPDX-License-Identifier: Apache-2.0
//
// Opens files without waiting for anyone. Thread-safe.
#pragma once

#include <fcntl.h>

#include <cstdint>
#include <string>

#include "core/base/os/descriptor.h"
#include "core/base/status.h"

namespace pfrt::os {

// Opening a pipe or device must neither wait nor change it.
inline constexpr int kReadFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

// Opens the regular file |path| and tells its size. Never waits for a peer. |flags| are added to
// kReadFlags.
Result<Descriptor> open_regular(const std::string& path, uint64_t* size, int flags = 0);

// The size of the open file |path|; an error where it is not a regular file.
Result<uint64_t> regular_size(int fd, const std::string& path);

}  // namespace pfrt::os
