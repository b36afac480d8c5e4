// SPDX-License-Identifier: Apache-2.0
//
// Options of the built-in passes. Plain values; the C ABI's and C++'s structs mirror them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/pass/engine/pass.h"

namespace pfrt {

struct ConstantFoldingConfig {
  uint64_t max_tensor_bytes = uint64_t{16} << 20;  // of a result
  bool fold_shape_ops = true;                      // Shape, and arithmetic on its results
  bool fold_expensive_ops = false;                 // products and convolutions too
  std::vector<std::string> exclude_ops;
};

struct DceConfig {
  bool remove_initializers = true;
  bool remove_identity = true;
  bool remove_dropout = true;
};

struct CseConfig {
  bool check_attributes = true;     // false: nodes that have attributes are left alone
  uint64_t max_comparisons = 1000;  // a node
};

struct FusionConfig {
  bool fuse_conv_bn = true;
  bool fuse_conv_bn_activation = true;
  bool fuse_matmul_add = true;
  bool fuse_elementwise_activation = true;
  bool check_backend_support = true;
  std::string target_backend;  // a provider's name or device word; "" = the session's first
};

enum class Layout { kNchw, kNhwc, kNc4hw4 };

struct LayoutConfig {
  Layout conv_layout = Layout::kNchw;
  bool insert_transposes = true;
  bool propagate_layout = true;
  std::string target_backend;
};

struct DataflowConfig {
  std::string target_backend;  // a provider's name; "" = the session's first
};

struct PipelineConfig {
  OptLevel level = OptLevel::kExtended;
  uint32_t max_iterations = 10;  // of run_until_fixed_point
  bool verbose = false;
  bool validate_after_pass = false;
  std::vector<std::string> skip_passes;
};

}  // namespace pfrt
