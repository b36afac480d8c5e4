// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "core/base/status.h"

namespace pfrt {

// Why work should end before it is done, asked on the thread that does it; empty: it should not.
using Stop = std::function<Status()>;

}  // namespace pfrt
