// SPDX-License-Identifier: Apache-2.0
//
// Attention in float32 whose matmuls run on packed panels (jit/panel_microkernel.h). Keys are taken
// block by block, keeping the largest score and the sum of exponentials so far, so that memory does
// not grow with the number of keys. Immutable; thread-safe.
#pragma once

#include "providers/cpu/kernels/attention/form.h"

namespace pfrt::cpu {

// Whether it computes |form| and is faster, which it is not for the few rows of a decoding step.
bool attention_on_panels(const AttentionForm& form);
Kernel panel_attention_kernel(AttentionForm form);

}  // namespace pfrt::cpu
