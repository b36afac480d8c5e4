// SPDX-License-Identifier: Apache-2.0
//
// Finds the values of a program that are nChw16c: [batch][channels / 16][pixels][16] where a tensor
// is [batch][channels][pixels]. Convolutions read and write either layout. Elementwise loops,
// pooling, normalisations by channel, DynamicQuantizeLinear and Concat of channels take either, as
// long as all of their values have the same; operands of loops with one element a channel are
// row-major. A value is nChw16c when all nodes that make or read it take it so and one of them is a
// convolution; values that enter or leave the region are row-major. Pure; thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "providers/cpu/compile/executable.h"

namespace pfrt::cpu {

// Whether each value of the snapshot is nChw16c.
std::vector<bool> nchw16c_values(const Executable& executable, const pfrt_shapes& shapes);

}  // namespace pfrt::cpu
