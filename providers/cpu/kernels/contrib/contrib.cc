// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/contrib/contrib.h"

#include "providers/cpu/kernels/contrib/make.h"

namespace pfrt::cpu {
namespace {

constexpr std::string_view kDomain = "com.microsoft";
constexpr Types kReal{PFRT_DTYPE_FLOAT32, PFRT_DTYPE_FLOAT64};
constexpr Types kTokens{PFRT_DTYPE_INT64};
constexpr Types kHashed{PFRT_DTYPE_INT32,  PFRT_DTYPE_UINT32,  PFRT_DTYPE_INT64,
                        PFRT_DTYPE_UINT64, PFRT_DTYPE_FLOAT32, PFRT_DTYPE_FLOAT64};
constexpr Types kCodes{PFRT_DTYPE_UINT8, PFRT_DTYPE_INT4, PFRT_DTYPE_UINT4};

constexpr KernelRow kRows[] = {
    {kDomain, "CDist", kReal, "cdist_rows", "generic", nullptr, make_cdist},
    {kDomain, "Inverse", kFloats, "inverse_ref", "generic", nullptr, make_inverse},
    checks_inputs({kDomain, "NGramRepeatBlock", kTokens, "ngram_repeat_block_ref", "generic",
                   nullptr, make_repeat_block}),
    checks_inputs({kDomain, "BifurcationDetector", kTokens, "bifurcation_detector_ref", "generic",
                   nullptr, make_bifurcation}),
    {kDomain, "DynamicTimeWarping", kFloat32, "dynamic_time_warping_ref", "generic", nullptr,
     make_time_warping},
    {kDomain, "MurmurHash3", kHashed, "murmur_hash3_ref", "generic", nullptr, make_hash},
    checks_inputs(
        {kDomain, "CropAndResize", kFloats, "crop_and_resize_ref", "generic", nullptr, make_crop}),
    with_epilogue(
        {kDomain, "MatMulBnb4", kFloatsTo32, "matmul_bnb4_packed", "generic", nullptr, make_bnb4}),
    sub_byte_as_is(
        checks_inputs({kDomain, "GatherBlockQuantized", kCodes, "gather_block_quantized_ref",
                       "generic", nullptr, make_gather_block})),
};

}  // namespace

std::span<const KernelRow> contrib_kernels() { return kRows; }

}  // namespace pfrt::cpu
