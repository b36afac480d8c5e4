// SPDX-License-Identifier: Apache-2.0
//
// Attention in float32 whose products run on packed panels (jit/panel_microkernel.h). Keys are
// taken block by block with the largest score and the sum of exponentials so far, so that memory
// does not grow with their number. Immutable; thread-safe.
#pragma once

#include "providers/cpu/kernels/attention/form.h"

namespace pfrt::cpu {

// Whether it computes |form|, and would be faster: not for the few rows of a step of decoding.
bool attention_on_panels(const AttentionForm& form);
Kernel panel_attention_kernel(AttentionForm form);

}  // namespace pfrt::cpu
