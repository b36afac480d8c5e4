// SPDX-License-Identifier: Apache-2.0
//
// The machine's peaks: arithmetic on random operands and reading from each level of memory, in
// generated code, on one thread and on all, each pinned to a processor. Every case takes turns with
// all others in several rounds over the whole time, since a processor's clock changes for seconds.
#pragma once

#include "core/base/status.h"
#include "pyflame_rt/plugin.h"

namespace pfrt::cpu {

// Serves pfrt_provider's measure. |stopped| is what progress returned, PFRT_CODE_OK when it never
// ended the measurement; otherwise nothing is reported.
Status measure(const pfrt_measure_request& request, pfrt_code& stopped);

}  // namespace pfrt::cpu
