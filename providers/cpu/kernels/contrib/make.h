// SPDX-License-Identifier: Apache-2.0
//
// The make and refuse functions of this family's table. Pure functions; thread-safe.
#pragma once

#include <string>

#include "providers/cpu/kernel/row.h"

namespace pfrt::cpu {

Result<Kernel> make_cdist(const KernelRequest& node);
Result<Kernel> make_inverse(const KernelRequest& node);
Result<Kernel> make_repeat_block(const KernelRequest& node);
Result<Kernel> make_bifurcation(const KernelRequest& node);
Result<Kernel> make_time_warping(const KernelRequest& node);
Result<Kernel> make_hash(const KernelRequest& node);
Result<Kernel> make_crop(const KernelRequest& node);
Result<Kernel> make_bnb4(const KernelRequest& node);
Result<Kernel> make_gather_block(const KernelRequest& node);

}  // namespace pfrt::cpu
