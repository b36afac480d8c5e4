// SPDX-License-Identifier: Apache-2.0
//
// The vision family: pools over regions of interest, convolutions whose taps move, columns back to
// images; and determinants. Rows are constants that live as long as the
// program; thread-safe.
#pragma once

#include <span>

#include "providers/cpu/row/row.h"

namespace pfrt::cpu {

std::span<const KernelRow> vision_kernels();

// region.cc
Result<Kernel> make_roi_align(const SnapshotNode& node);
Result<Kernel> make_max_roi_pool(const SnapshotNode& node);
// deform.cc
Result<Kernel> make_deform_conv(const SnapshotNode& node);
std::string refuse_deform_conv(const SnapshotNode& node);
// columns.cc
Result<Kernel> make_col2im(const SnapshotNode& node);
// matrix.cc
Result<Kernel> make_det(const SnapshotNode& node);

}  // namespace pfrt::cpu
