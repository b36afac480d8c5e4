// SPDX-License-Identifier: Apache-2.0
//
// The convolution family: Conv, ConvTranspose and the integer and quantized forms of Conv.
// Rows are constants that live as long as the program; thread-safe.
#pragma once

#include <span>

#include "providers/cpu/kernel/row.h"

namespace pfrt::cpu {

std::span<const KernelRow> conv_kernels();

}  // namespace pfrt::cpu
