// SPDX-License-Identifier: Apache-2.0
//
// Opens the files that a model names, within the model's folder. Part of file.h; thread-safe.
#pragma once

#include <fcntl.h>

#include <string>

#include "core/base/os/descriptor.h"
#include "core/base/status.h"

namespace pfrt::os {

// Limits of symbolic links from the files that a model names.
enum class Confine {
  kLinks,   // to the model's folder or, where the model's path is a link, to the folder it leads to
  kStrict,  // nowhere out of the folder that the model's path names
};

// Opens the file that the model at |model| calls |location|, as MappedFile::open_beside does,
// whatever its kind.
Result<Descriptor> beside(const std::string& model, const std::string& location, Confine confine);

}  // namespace pfrt::os
