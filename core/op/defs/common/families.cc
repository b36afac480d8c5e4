// SPDX-License-Identifier: Apache-2.0
#include "core/op/defs/common/families.h"

#include <array>

namespace pfrt {

std::span<const std::span<const OperatorDef>> operators() {
  static const std::array families = {elementwise_operators(),
                                      reduce_operators(),
                                      movement_operators(),
                                      index_operators(),
                                      constant_operators(),
                                      shape_operators(),
                                      nn_operators(),
                                      pool_operators(),
                                      norm_operators(),
                                      matmul_operators(),
                                      resize_operators(),
                                      quantize_operators(),
                                      recurrent_operators(),
                                      sequence_operators(),
                                      control_operators(),
                                      text_operators(),
                                      string_operators(),
                                      flex_attention_operators(),
                                      contrib_fused_operators(),
                                      contrib_qlinear_operators(),
                                      contrib_matmul_operators(),
                                      contrib_move_operators(),
                                      contrib_native_operators(),
                                      removed_operators(),
                                      ml_operators(),
                                      signal_operators(),
                                      random_operators(),
                                      training_operators(),
                                      attention_operators(),
                                      transformer_attention_operators(),
                                      transformer_group_operators(),
                                      transformer_norm_operators()};
  return families;
}

}  // namespace pfrt
