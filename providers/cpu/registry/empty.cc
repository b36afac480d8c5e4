// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/registry/empty.h"

#include <algorithm>

namespace pfrt::cpu {
namespace {

bool is_empty(std::span<const int64_t> dims) { return std::ranges::find(dims, 0) != dims.end(); }

}  // namespace

bool has_empty(const SnapshotNode& node) {
  for (uint32_t i = 0; i < node.input_count(); ++i)
    if ((i == 0 || node.input_rank(i) > 1) && is_empty(node.input_dims(i))) return true;
  for (uint32_t i = 0; i < node.output_count(); ++i)
    if (node.has_output(i) && is_empty(node.output_dims(i))) return true;
  return false;
}

bool is_idle(const SnapshotNode& node, const KernelRow* row) {
  for (uint32_t i = 0; i < node.output_count(); ++i)
    if (node.has_output(i) && node.output_elements(i) != 0) return false;
  return row == nullptr || !row->has(kChecksInputs);
}

}  // namespace pfrt::cpu
