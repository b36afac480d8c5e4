// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/quantize/quantize.h"

#include "providers/cpu/kernels/quantize/rows.h"

namespace pfrt::cpu {
namespace {

constexpr Types kRealTypes{PFRT_DTYPE_FLOAT32, PFRT_DTYPE_FLOAT16, PFRT_DTYPE_BFLOAT16,
                           PFRT_DTYPE_INT32};
constexpr Types kQuantizedTypes =
    kFloat8 | kSubByte |
    Types{PFRT_DTYPE_INT8, PFRT_DTYPE_UINT8, PFRT_DTYPE_INT16, PFRT_DTYPE_UINT16, PFRT_DTYPE_INT32};

constexpr KernelRow kRows[] = {
    {"", "QuantizeLinear", kRealTypes, "quantize_ref", "generic", refuse_quantize, make_quantize},
    with_epilogue({"", "DequantizeLinear", kQuantizedTypes, "dequantize_ref", "generic",
                   refuse_dequantize, make_dequantize}),
    with({"", "DynamicQuantizeLinear", kFloat32, "dynamic_quantize_ref", "generic",
          refuse_dynamic_quantize, make_dynamic_quantize},
         kNchw16c),
};

}  // namespace

std::span<const KernelRow> quantize_kernels() { return kRows; }

}  // namespace pfrt::cpu
