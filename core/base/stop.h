// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "core/base/status.h"

namespace pfrt {

// Tells why work should end before it is done, on the thread that does it. An empty function, or an
// OK status, lets it go on.
using Stop = std::function<Status()>;

}  // namespace pfrt
