// SPDX-License-Identifier: Apache-2.0
//
// com.microsoft operators that cannot be composed of those of ai.onnx: distances, inverses,
// sequences of tokens, crops, weights of few bits. Rows are constants that live as long as the
// program; thread-safe.
#pragma once

#include <span>

#include "providers/cpu/kernel/row.h"

namespace pfrt::cpu {

std::span<const KernelRow> contrib_kernels();

}  // namespace pfrt::cpu
