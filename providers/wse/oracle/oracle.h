// SPDX-License-Identifier: Apache-2.0
//
// An event simulator of a small mesh, one event for each move of each wavelet, that runs the
// algorithms of ../README.md ("The machine on a page"). Slow and plain: the values and cycles of
// this provider's fast engine are held against it, so the two share nothing but the machine's
// numbers. A pure function; thread-safe.
//
// Links and ramps are shared by colors, and queues are as long as the machine has them, so that
// wavelets wait for room. If the README leaves a choice, the comment beside the code begins with
// "Reading:".
#pragma once

#include "core/base/status.h"
#include "providers/wse/machine/machine.h"
#include "providers/wse/oracle/case.h"

namespace pfrt::wse::oracle {

// Fails with INVALID_ARGUMENT for a case that is out of range or lacks inputs.
Result<Outcome> simulate(const Machine& machine, const Case& work);

}  // namespace pfrt::wse::oracle
