// SPDX-License-Identifier: Apache-2.0
//
// Questions that the wafer answers without a run: its machine, what lies on it, what a product or a
// language model would take, and how the model of it compares with what others measured.
#pragma once

#include "providers/wse/program/executable.h"

namespace pfrt::wse {

// Fails with UNSUPPORTED for a verb that there is not.
Status answer(Device& device, const pfrt_question& question, const pfrt_answer& answer,
              const pfrt_sink& sink);

}  // namespace pfrt::wse
