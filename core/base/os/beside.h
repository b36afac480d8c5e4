// SPDX-License-Identifier: Apache-2.0
//
// Opening the files that a model names, held to where the model is. Part of file.h; thread-safe.
#pragma once

#include <fcntl.h>

#include <string>

#include "core/base/os/file.h"
#include "core/base/status.h"

namespace pfrt::os {

// Opening a pipe or device must neither wait nor change it.
inline constexpr int kReadFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

// The file that the model at |model| calls |location|, as MappedFile::open_beside has it, of any
// kind.
Result<Descriptor> beside(const std::string& model, const std::string& location, Confine confine);

}  // namespace pfrt::os
