// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernel/signature.h"

#include <algorithm>

#include "providers/cpu/kernel/kernel.h"

namespace pfrt::cpu {

std::string dims_text(std::span<const int64_t> dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) text += message(i ? ", " : "", dims[i]);
  return text + "]";
}

Status need(const SnapshotNode& node, uint32_t inputs, uint32_t outputs) {
  for (uint32_t i = 0; i < inputs; ++i) {
    if (!node.has_input(i)) return kernel_error("input ", i, " is required and absent");
    if (node.input_rank(i) < 0 || node.input_elements(i) < 0)
      return kernel_error("the dimensions of input ", i, " are not known");
  }
  for (uint32_t i = 0; i < outputs; ++i) {
    if (!node.has_output(i)) return kernel_error("output ", i, " is required and absent");
    if (node.output_rank(i) < 0 || node.output_elements(i) < 0)
      return kernel_error("the dimensions of output ", i, " are not known");
  }
  return {};
}

Status need_scalar(const SnapshotNode& node, uint32_t i) {
  if (!node.has_input(i)) return kernel_error("input ", i, " is required and absent");
  if (node.input_rank(i) < 0 || node.input_elements(i) != 1)
    return kernel_error("input ", i, " has to be one element, found ",
                        dims_text(node.input_dims(i)));
  return {};
}

Status need_output_dims(const SnapshotNode& node, uint32_t i, std::span<const int64_t> dims) {
  if (same_dims(node.output_dims(i), dims)) return {};
  return kernel_error("output ", i, " was planned as ", dims_text(node.output_dims(i)), " but is ",
                      dims_text(dims));
}

Status need_like_output(const SnapshotNode& node, uint32_t i) {
  if (node.input_dtype(i) != node.output_dtype(0))
    return error(Code::kDTYPE_MISMATCH, "input ", i, " is ", dtype_name(node.input_dtype(i)),
                 ", the output ", dtype_name(node.output_dtype(0)),
                 ": cast one to the other's type");
  return need_output_dims(node, 0, node.input_dims(i));
}

Result<int64_t> axis_of(int64_t axis, size_t rank) {
  const int64_t r = static_cast<int64_t>(rank);
  if (axis < -r || axis >= r) return kernel_error("axis ", axis, " is outside [", -r, ", ", r, ")");
  return axis < 0 ? axis + r : axis;
}

bool same_dims(std::span<const int64_t> a, std::span<const int64_t> b) {
  return std::ranges::equal(a, b);
}

bool like_output(const SnapshotNode& node, uint32_t i) {
  return node.has_input(i) && node.input_rank(i) >= 0 &&
         node.input_dtype(i) == node.output_dtype(0) &&
         same_dims(node.input_dims(i), node.output_dims(0));
}

}  // namespace pfrt::cpu
