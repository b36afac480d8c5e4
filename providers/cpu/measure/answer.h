// SPDX-License-Identifier: Apache-2.0
//
// The CPU's answers to questions. It knows one verb: "measure". Thread-safe.
#pragma once

#include "core/base/status.h"
#include "pyflame_rt/plugin.h"

namespace pfrt::cpu {

// Fails with UNSUPPORTED for another verb, and with the code of |sink|'s stop once that is not OK.
Status answer(const pfrt_question& question, const pfrt_answer& out, const pfrt_sink& sink);

}  // namespace pfrt::cpu
