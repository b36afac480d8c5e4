// SPDX-License-Identifier: Apache-2.0
//
// Sub-byte types for kernels that want whole bytes: a program puts these kernels before and after
// such a step, so that no other kernel knows how elements share a byte. Pure functions;
// thread-safe.
#pragma once

#include <cstdint>

#include "providers/cpu/kernel/kernel.h"
#include "providers/cpu/kernel/types.h"

namespace pfrt::cpu {

// Input 0, |count| elements of the sub-byte type |dtype|, to a byte each (kernel/types.h,
// stored_size).
Kernel unpack_sub_byte(pfrt_dtype dtype, int64_t count);
// The other way; bits after the last element are 0.
Kernel pack_sub_byte(pfrt_dtype dtype, int64_t count);

}  // namespace pfrt::cpu
