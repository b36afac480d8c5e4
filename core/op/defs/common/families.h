// SPDX-License-Identifier: Apache-2.0
//
// The families of operators. Each function returns the rows of one family; operator.cc collects
// them into the table that operators() exposes. The rows are constants of the program: they live
// for its whole life and may be read by any thread.
#pragma once

#include <span>

#include "core/op/engine/operator_def.h"

namespace pfrt {

std::span<const OperatorDef> elementwise_operators();
std::span<const OperatorDef> reduce_operators();
std::span<const OperatorDef> sequence_operators();
std::span<const OperatorDef> control_operators();
std::span<const OperatorDef> text_operators();
std::span<const OperatorDef> flex_attention_operators();
std::span<const OperatorDef> string_operators();
std::span<const OperatorDef> movement_operators();
std::span<const OperatorDef> index_operators();
std::span<const OperatorDef> constant_operators();
std::span<const OperatorDef> shape_operators();
std::span<const OperatorDef> nn_operators();
std::span<const OperatorDef> pool_operators();
std::span<const OperatorDef> norm_operators();
std::span<const OperatorDef> matmul_operators();
std::span<const OperatorDef> resize_operators();
std::span<const OperatorDef> quantize_operators();
std::span<const OperatorDef> recurrent_operators();
std::span<const OperatorDef> contrib_fused_operators();
std::span<const OperatorDef> contrib_qlinear_operators();
std::span<const OperatorDef> contrib_matmul_operators();
std::span<const OperatorDef> contrib_move_operators();
std::span<const OperatorDef> contrib_native_operators();
std::span<const OperatorDef> removed_operators();
std::span<const OperatorDef> ml_operators();
std::span<const OperatorDef> signal_operators();
std::span<const OperatorDef> random_operators();
std::span<const OperatorDef> training_operators();
std::span<const OperatorDef> attention_operators();
std::span<const OperatorDef> transformer_attention_operators();
std::span<const OperatorDef> transformer_group_operators();
std::span<const OperatorDef> transformer_norm_operators();

}  // namespace pfrt
