// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string_view>

#include "providers/cpu/elements/load.h"
#include "providers/cpu/elements/strided.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/move/make.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kShortestRun = 16;  // elements that are worth a call of apply_epilogue
constexpr int64_t kBlock = 1 << 15;

// An input of Concat or an output of Split.
struct Slice {
  uint32_t index;
  int64_t offset;  // elements into the whole tensor
  StridedCopy copy;
};

// All of |dims| but the axis must equal |whole|.
Status check_slice(std::span<const int64_t> dims, std::span<const int64_t> whole, size_t axis,
                   std::string_view name, uint32_t index) {
  if (dims.size() != whole.size())
    return kernel_error(name, " ", index, " has rank ", dims.size(), ", expected ", whole.size());
  for (size_t d = 0; d < dims.size(); ++d)
    if (d != axis && dims[d] != whole[d])
      return kernel_error(name, " ", index, " has dimension ", d, " of ", dims[d], ", expected ",
                          whole[d]);
  return Status();
}

}  // namespace

std::string refuse_concat_nchw16c(const SnapshotNode& node, Nchw16cSides sides) {
  const int64_t axis = node.attr_int("axis", 0);
  if (sides.input != sides.output) return "input and output need the same layout";
  return axis == 1 || axis + node.output_rank(0) == 1 ? ""
                                                      : "in nChw16c only channels are concatenated";
}

// In nChw16c, whole blocks of 16 channels are concatenated as channels are.
Result<Kernel> make_concat_nchw16c(const KernelRequest& node, Nchw16cSides) {
  return make_concat(node);
}

Result<Kernel> make_concat(const KernelRequest& node) {
  PFRT_TRY(need(node, node.input_count(), 1));
  const auto out = node.output_dims(0);
  PFRT_ASSIGN(const int64_t signed_axis, axis_of(node.attr_int("axis", 0), out.size()));
  const size_t axis = static_cast<size_t>(signed_axis);
  const size_t bytes = stored_size(node.input_dtype(0));
  const std::vector<int64_t> strides = dense_strides(out);
  std::vector<Slice> slices;
  int64_t start = 0, shortest = INT64_MAX;  // of the runs that are contiguous in the output
  for (uint32_t i = 0; i < node.input_count(); ++i) {
    PFRT_TRY(need_types(node, {i}, Types{node.input_dtype(0)}));
    const auto dims = node.input_dims(i);
    PFRT_TRY(check_slice(dims, out, axis, "input", i));
    slices.push_back(
        {i, start * strides[axis], StridedCopy(bytes, dims, dense_strides(dims), strides)});
    start += dims[axis];
    shortest = std::min(shortest, dims[axis] * strides[axis]);
  }
  if (start != out[axis])
    return kernel_error("the inputs add up to ", start, " along axis ", axis, ", planned ",
                        out[axis]);
  Kernel kernel;
  kernel.run = [slices = std::move(slices), in_pieces = shortest >= kShortestRun,
                size = static_cast<int64_t>(bytes),
                total = node.output_elements(0)](const Run& run) -> pfrt_code {
    for (const Slice& p : slices)
      p.copy.run(run, run.input(p.index), run.output<char>(0) + p.offset * size,
                 in_pieces ? std::optional(p.offset) : std::nullopt);
    if (!in_pieces)
      run.blocks(total, kBlock,
                 [&](int64_t begin, int64_t end) { run.apply_epilogue(begin, end); });
    return run.stop();
  };
  return kernel;
}

Result<Kernel> make_split(const KernelRequest& node) {
  PFRT_TRY(need(node, 1, 0));
  const auto in = node.input_dims(0);
  PFRT_ASSIGN(const int64_t signed_axis, axis_of(node.attr_int("axis", 0), in.size()));
  const size_t axis = static_cast<size_t>(signed_axis);
  const size_t bytes = stored_size(node.input_dtype(0));
  const std::vector<int64_t> strides = dense_strides(in);
  std::vector<Slice> slices;
  int64_t start = 0;
  const std::vector<int64_t> sizes = node.constant_int64s(1);
  for (uint32_t i = 0; i < node.output_count(); ++i) {
    if (!node.has_output(i)) {  // nothing uses it
      if (sizes.size() != node.output_count())
        return kernel_error("output ", i, " is absent, and the sizes are not constants");
      start += sizes[i];
      continue;
    }
    const auto dims = node.output_dims(i);
    PFRT_TRY(check_slice(dims, in, axis, "output", i));
    slices.push_back(
        {i, start * strides[axis], StridedCopy(bytes, dims, strides, dense_strides(dims))});
    start += dims[axis];
  }
  if (start != in[axis])
    return kernel_error("the outputs add up to ", start, " along axis ", axis, " of ", in[axis]);
  Kernel kernel;
  kernel.run = [slices = std::move(slices),
                size = static_cast<int64_t>(bytes)](const Run& run) -> pfrt_code {
    for (const Slice& p : slices)
      p.copy.run(run, run.input<char>(0) + p.offset * size, run.output(p.index));
    return run.stop();
  };
  return kernel;
}

}  // namespace pfrt::cpu
