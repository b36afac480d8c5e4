// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/vision/vision.h"

namespace pfrt::cpu {
namespace {

constexpr KernelRow kRows[] = {
    checks_inputs({"", "RoiAlign", kFloats, "roi_align_bins", "generic", nullptr, make_roi_align}),
    checks_inputs(
        {"", "MaxRoiPool", kFloats, "max_roi_pool_bins", "generic", nullptr, make_max_roi_pool}),
    {"", "DeformConv", kFloats, "deform_conv_columns", "generic", refuse_deform_conv,
     make_deform_conv},
    checks_inputs({"", "Col2Im", kNumbers, "col2im_planes", "generic", nullptr, make_col2im}),
    {"", "Det", kFloats, "det_lu", "generic", nullptr, make_det},
};

}  // namespace

std::span<const KernelRow> vision_kernels() { return kRows; }

}  // namespace pfrt::cpu
