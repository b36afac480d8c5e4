// SPDX-License-Identifier: Apache-2.0
//
// ReduceLogSumExp of float32 and shorter floats, with the exponentials of Softmax. Pure functions;
// thread-safe.
#pragma once

#include "providers/cpu/kernel/run.h"
#include "providers/cpu/kernels/reduce/float_reduction.h"

namespace pfrt::cpu {

// Whether one thread may compute an output. Its bits must not depend on the number of outputs.
bool log_sum_exp_by_lines(const ReducePlan& plan);
void log_sum_exp_lines(const Run& run, const ReduceJob& job);

}  // namespace pfrt::cpu
