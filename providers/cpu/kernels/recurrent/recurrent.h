// SPDX-License-Identifier: Apache-2.0
//
// The recurrent family: RNN, GRU and LSTM.
// Rows are constants that live as long as the program; thread-safe.
#pragma once

#include <span>

#include "providers/cpu/kernel/row.h"

namespace pfrt::cpu {

std::span<const KernelRow> recurrent_kernels();

}  // namespace pfrt::cpu
