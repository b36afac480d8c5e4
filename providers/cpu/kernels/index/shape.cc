// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/index/index.h"

namespace pfrt::cpu {
namespace {

// The contents are not looked at.
constexpr Types kAnything = kElements | Types{PFRT_DTYPE_STRING};

Result<Kernel> numbers_kernel(const SnapshotNode& node, std::vector<int64_t> numbers) {
  if (node.output_dtype(0) != PFRT_DTYPE_INT64)
    return error(Code::kDTYPE_MISMATCH, "the output is ", dtype_name(node.output_dtype(0)),
                 ": int64");
  if (node.output_elements(0) != static_cast<int64_t>(numbers.size()))
    return kernel_error("there are ", numbers.size(), " numbers, the output was planned with ",
                        node.output_elements(0));
  Kernel kernel;
  kernel.width = 1;
  kernel.run = [numbers = std::move(numbers)](const Run& run) {
    std::ranges::copy(numbers, run.output<int64_t>(0));
    return pfrt_code{PFRT_CODE_OK};
  };
  return kernel;
}

Result<Kernel> make_shape(const KernelRequest& node) {
  PFRT_TRY(need(node, 1, 1));
  const auto dims = node.input_dims(0);
  const int64_t rank = static_cast<int64_t>(dims.size());
  const auto bound = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const int64_t start = bound(node.attr_int("start", 0));
  const int64_t end = std::max(start, bound(node.attr_int("end", rank)));
  return numbers_kernel(node, std::vector<int64_t>(dims.begin() + start, dims.begin() + end));
}

Result<Kernel> make_size(const KernelRequest& node) {
  PFRT_TRY(need(node, 1, 1));
  return numbers_kernel(node, {node.input_elements(0)});
}

constexpr KernelRow kRows[] = {
    sub_byte_as_is({"", "Shape", kAnything, "shape_ref", "generic", nullptr, make_shape}),
    sub_byte_as_is({"", "Size", kAnything, "size_ref", "generic", nullptr, make_size}),
};

}  // namespace

std::span<const KernelRow> shape_rows() { return kRows; }

}  // namespace pfrt::cpu
