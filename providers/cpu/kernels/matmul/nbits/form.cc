// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/matmul/nbits/form.h"

#include <vector>

#include "providers/cpu/elements/load.h"
#include "providers/cpu/kernel/signature.h"

namespace pfrt::cpu {
namespace {

Status check_sizes(const SnapshotNode& node, const NBitsForm& f) {
  const int64_t rows = f.n * f.blocks;
  if (node.input_elements(NBitsForm::kB) != rows * f.block_bytes())
    return kernel_error("B has ", node.input_elements(NBitsForm::kB), " bytes, expected ", f.n,
                        " x ", f.blocks, " blocks of ", f.block_bytes());
  if (node.input_elements(NBitsForm::kScales) != rows)
    return kernel_error("scales has ", node.input_elements(NBitsForm::kScales),
                        " elements, expected ", rows);
  const int64_t zeros = f.zero_dtype == PFRT_DTYPE_UINT8 ? f.n * f.zero_bytes() : rows;
  if (node.has_input(NBitsForm::kZeros) && node.input_elements(NBitsForm::kZeros) != zeros)
    return kernel_error("zero_points has ", node.input_elements(NBitsForm::kZeros),
                        " elements, expected ", zeros);
  if (f.has_groups && node.input_elements(NBitsForm::kGroups) < f.k)
    return kernel_error("g_idx has ", node.input_elements(NBitsForm::kGroups), " elements, needs ",
                        f.k);
  if (f.has_bias && node.input_elements(NBitsForm::kBias) != f.n)
    return kernel_error("bias has ", node.input_elements(NBitsForm::kBias), " elements, expected ",
                        f.n);
  return {};
}

// accuracy_level 4 allows int8 rows, and so does precision bf16, whose factors have as many bits.
bool allows_int8(const SnapshotNode& node) {
  constexpr int64_t kInt8 = 4;
  if (node.precision() == Precision::kIeee) return false;
  return node.attr_int("accuracy_level", 0) == kInt8 || node.precision() == Precision::kBfloat16;
}

}  // namespace

Result<NBitsForm> read_nbits_form(const SnapshotNode& node) {
  PFRT_TRY(need_types(node, {NBitsForm::kB}, Types{PFRT_DTYPE_UINT8}));
  PFRT_TRY(need_types(node, {NBitsForm::kScales, NBitsForm::kBias}, kFloats));
  PFRT_TRY(need_types(node, {NBitsForm::kZeros}, kFloats | Types{PFRT_DTYPE_UINT8}));
  PFRT_TRY(need_types(node, {NBitsForm::kGroups}, Types{PFRT_DTYPE_INT32}));
  NBitsForm f;
  f.n = node.attr_int("N", 0), f.k = node.attr_int("K", 0);
  f.bits = node.attr_int("bits", 4), f.block = node.attr_int("block_size", 0);
  constexpr int64_t kMost = int64_t{1} << 31;
  if (f.n < 1 || f.k < 1 || f.n > kMost || f.k > kMost || f.block < 1 || f.block > kMost)
    return kernel_error("N ", f.n, ", K ", f.k, " and block_size ", f.block, " make no sense");
  if ((f.bits != 1 && f.bits != 2 && f.bits != 4 && f.bits != 8) || f.block * f.bits % 8 != 0)
    return kernel_error("blocks of ", f.block, " elements of ", f.bits,
                        " bits are not supported; expected 2, 4 or 8 bits and whole bytes");
  f.blocks = (f.k + f.block - 1) / f.block;
  if (f.n > INT64_MAX / 16 / (f.blocks * f.block)) return kernel_error("N x K is too large");
  f.scale_dtype = node.input_dtype(NBitsForm::kScales);
  f.zero_dtype = node.input_dtype(NBitsForm::kZeros);  // 0 when absent
  f.has_groups = node.has_input(NBitsForm::kGroups), f.has_bias = node.has_input(NBitsForm::kBias);
  f.int8_rows = allows_int8(node);
  PFRT_TRY(check_sizes(node, f));
  return f;
}

Result<int64_t> NBitsForm::rows(const SnapshotNode& node) const {
  PFRT_TRY(need(node, 3, 1));
  const auto a = node.input_dims(kA);
  if (a.empty() || a.back() != k)
    return kernel_error("A is ", dims_text(a), ", its last dimension must be K, ", k);
  if (node.output_dtype(0) != node.input_dtype(kA))
    return error(Code::kDTYPE_MISMATCH, "the output has another type than A");
  std::vector<int64_t> y(a.begin(), a.end());
  y.back() = n;
  PFRT_TRY(need_output_dims(node, 0, y));
  return SnapshotNode::elements(a.first(a.size() - 1));
}

}  // namespace pfrt::cpu
