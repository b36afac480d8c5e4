// SPDX-License-Identifier: Apache-2.0
//
// Compares the model of ../README.md with published figures, row by row. A pure function of its
// arguments; thread-safe.
#pragma once

#include <functional>
#include <vector>

#include "core/base/status.h"
#include "providers/wse/machine/machine.h"
#include "providers/wse/published/validation.h"

namespace pfrt::wse {

// Every row, with |changes| made to each machine. |stop| (may be empty) is asked between rows: once
// it returns true the result is CANCELLED. |oracle|: whether with V13, the engine beside the
// oracle, which takes nearly all of the time. Fails with INVALID_ARGUMENT for a change that no
// machine takes.
Result<Validation> validate(const std::vector<Change>& changes, const std::function<bool()>& stop,
                            bool oracle = true);

}  // namespace pfrt::wse
