// SPDX-License-Identifier: Apache-2.0
#include "core/base/os/variable.h"

#include <stdlib.h>

namespace pfrt::os {

const char* variable(const char* name) {
  const char* const value = ::secure_getenv(name);
  return value ? value : "";
}

}  // namespace pfrt::os
