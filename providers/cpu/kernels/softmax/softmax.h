// SPDX-License-Identifier: Apache-2.0
//
// Rows of Softmax, LogSoftmax and Hardmax along one axis. The rows are constants of the program;
// thread-safe.
#pragma once

#include <span>

#include "providers/cpu/kernel/row.h"

namespace pfrt::cpu {

std::span<const KernelRow> softmax_kernels();

}  // namespace pfrt::cpu
