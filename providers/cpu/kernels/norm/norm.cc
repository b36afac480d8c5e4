// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/norm/norm.h"

#include "providers/cpu/kernels/norm/make.h"

namespace pfrt::cpu {
namespace {

constexpr KernelRow kRows[] = {
    with(optional_outputs({"", "BatchNormalization", kFloats, "batch_norm_planes", "generic",
                           refuse_layouts<refuse_batch_norm, refuse_batch_norm_nchw16c>,
                           make_layouts<make_batch_norm, make_batch_norm_nchw16c>}),
         kEpilogue | kNchw16c),
    with_epilogue(
        optional_outputs({"", "BatchNormalization", kFloats, "batch_norm_training", "generic",
                          refuse_batch_norm_training, make_batch_norm_training})),
    with_epilogue({"", "InstanceNormalization", kFloats, "instance_norm_planes", "generic", nullptr,
                   make_instance_norm}),
    with_epilogue({"", "GroupNormalization", kFloats, "group_norm_planes", "generic", nullptr,
                   make_group_norm}),
    with_epilogue(optional_outputs({"", "LayerNormalization", kFloats, "layer_norm_rows", "generic",
                                    nullptr, make_layer_norm})),
    with_epilogue(
        {"", "RMSNormalization", kFloats, "rms_norm_rows", "generic", nullptr, make_rms_norm}),
    {"", "LpNormalization", kFloats, "lp_norm_ref", "generic", nullptr, make_lp_norm},
    {"", "MeanVarianceNormalization", kFloats, "mean_variance_norm_ref", "generic", nullptr,
     make_mean_variance_norm},
    with({"", "LRN", kFloats, "lrn_channels", "generic",
          refuse_layouts<nullptr, refuse_lrn_nchw16c>, make_layouts<make_lrn, make_lrn_nchw16c>},
         kEpilogue | kNchw16c),
};

}  // namespace

std::span<const KernelRow> norm_kernels() { return kRows; }

}  // namespace pfrt::cpu
