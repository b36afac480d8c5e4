// SPDX-License-Identifier: Apache-2.0
//
// The make and refuse functions of this family's table, by file. Pure functions; thread-safe.
#pragma once

#include <string>

#include "providers/cpu/kernel/row.h"

namespace pfrt::cpu {

// rows.cc
Result<Kernel> make_layer_norm(const KernelRequest& node);
Result<Kernel> make_rms_norm(const KernelRequest& node);
// channels.cc
Result<Kernel> make_batch_norm(const KernelRequest& node);
Result<Kernel> make_instance_norm(const KernelRequest& node);
Result<Kernel> make_group_norm(const KernelRequest& node);
std::string refuse_batch_norm(const KernelRequest& node);
std::string refuse_batch_norm_nchw16c(const SnapshotNode& node, Nchw16cSides sides);
Result<Kernel> make_batch_norm_nchw16c(const SnapshotNode& node, Nchw16cSides sides);
Result<Kernel> make_batch_norm_training(const KernelRequest& node);
std::string refuse_batch_norm_training(const KernelRequest& node);
// axes.cc
Result<Kernel> make_lp_norm(const KernelRequest& node);
Result<Kernel> make_mean_variance_norm(const KernelRequest& node);
// lrn.cc
Result<Kernel> make_lrn(const KernelRequest& node);
std::string refuse_lrn_nchw16c(const SnapshotNode& node, Nchw16cSides sides);
Result<Kernel> make_lrn_nchw16c(const SnapshotNode& node, Nchw16cSides sides);

}  // namespace pfrt::cpu
