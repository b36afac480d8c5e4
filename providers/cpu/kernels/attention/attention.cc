// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/attention/attention.h"

namespace pfrt::cpu {
namespace {

constexpr KernelRow kRows[] = {
    checks_inputs(
        {"", "Attention", kFloats, "attention_blocks", "generic", nullptr, make_attention}),
    checks_inputs({"com.microsoft", "GroupQueryAttention", kFloats, "group_query_attention_blocks",
                   "generic", nullptr, make_group_query_attention}),
    checks_inputs(
        {"", "RotaryEmbedding", kFloats, "rotary_rows", "generic", nullptr, make_rotary_embedding}),
    checks_inputs({"", "TensorScatter", kMovable, "tensor_scatter_rows", "generic", nullptr,
                   make_tensor_scatter}),
    {"", "CausalConvWithState", kFloats, "causal_conv_channels", "generic", nullptr,
     make_causal_conv},
    {"", "LinearAttention", kFloatsTo32, "linear_attention_steps", "generic", nullptr,
     make_linear_attention},
};

}  // namespace

std::span<const KernelRow> attention_rows() { return kRows; }

}  // namespace pfrt::cpu
