// SPDX-License-Identifier: Apache-2.0
//
// Reads the operands of nodes with attention into an AttentionForm, and checks them. Pure
// functions; thread-safe.
#pragma once

#include <string_view>

#include "providers/cpu/kernels/attention/form.h"

namespace pfrt::cpu {

// Attributes that count the heads of inputs of rank 3.
struct HeadNames {
  std::string_view q, kv;
};

// Inputs 0 to 2: dimensions, strides.
Status read_operands(const SnapshotNode& node, const HeadNames& names, AttentionForm& form);
// Inputs |input| and the next, if there: keys and values of the past, which need outputs 1 and 2.
Status read_past(const SnapshotNode& node, uint32_t input, AttentionForm& form);
// Outputs 1 and 2, where wanted, have |form.total| positions.
Status check_presents(const SnapshotNode& node, const AttentionForm& form);
// Input |input|, if there, broadcasts to scores of |form.total| keys or fewer.
Status read_mask(const SnapshotNode& node, uint32_t input, AttentionForm& form);

}  // namespace pfrt::cpu
