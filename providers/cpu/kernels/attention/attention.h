// SPDX-License-Identifier: Apache-2.0
//
// The attention family: Attention and its relatives with caches, rotary positions, and the
// recurrences that stand in for attention. Rows are constants that live as long as the program;
// thread-safe.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "providers/cpu/kernel/row.h"

namespace pfrt::cpu {

std::span<const KernelRow> attention_rows();

// scaled_dot_product.cc
Result<Kernel> make_attention(const KernelRequest& node);
// group_query.cc
Result<Kernel> make_group_query_attention(const KernelRequest& node);
std::vector<std::pair<uint32_t, uint32_t>> group_query_caches(const SnapshotNode& node);
// rotary.cc
Result<Kernel> make_rotary_embedding(const KernelRequest& node);
// tensor_scatter.cc
Result<Kernel> make_tensor_scatter(const KernelRequest& node);
// causal_conv.cc
Result<Kernel> make_causal_conv(const KernelRequest& node);
// linear.cc
Result<Kernel> make_linear_attention(const KernelRequest& node);

}  // namespace pfrt::cpu
