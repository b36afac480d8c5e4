// SPDX-License-Identifier: Apache-2.0
//
// The vision family: pools over regions of interest, convolutions whose taps move, columns back to
// images; and determinants. Rows are constants that live as long as the
// program; thread-safe.
#pragma once

#include <span>

#include "providers/cpu/kernel/row.h"

namespace pfrt::cpu {

std::span<const KernelRow> vision_kernels();

// region.cc
Result<Kernel> make_roi_align(const KernelRequest& node);
Result<Kernel> make_max_roi_pool(const KernelRequest& node);
// deform.cc
Result<Kernel> make_deform_conv(const KernelRequest& node);
std::string refuse_deform_conv(const KernelRequest& node);
// columns.cc
Result<Kernel> make_col2im(const KernelRequest& node);
// matrix.cc
Result<Kernel> make_det(const KernelRequest& node);

}  // namespace pfrt::cpu
