// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/elements/strided.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/move/make.h"
#include "providers/cpu/kernels/move/permute.h"

namespace pfrt::cpu {
namespace {

// The kernel that copies input 0, seen with |strides|, to a dense output of |dims|.
Kernel copy_kernel(const SnapshotNode& node, std::span<const int64_t> dims,
                   std::span<const int64_t> strides) {
  Kernel kernel;
  kernel.run = [copy = StridedCopy(stored_size(node.input_dtype(0)), dims, strides,
                                   dense_strides(dims))](const Run& run) -> pfrt_code {
    copy.run(run, run.input(0), run.output(0), 0);
    return run.stop();
  };
  return kernel;
}

}  // namespace

Result<Kernel> permute(const SnapshotNode& node, std::span<const int64_t> dims,
                       std::span<const int64_t> perm) {
  const std::vector<int64_t> strides = dense_strides(dims);
  std::vector<int64_t> out, from;
  for (int64_t p : perm) {
    out.push_back(dims[static_cast<size_t>(p)]);
    from.push_back(strides[static_cast<size_t>(p)]);
  }
  if (SnapshotNode::elements(out) != node.output_elements(0))
    return kernel_error("output 0 was planned with ", node.output_elements(0), " elements but has ",
                        SnapshotNode::elements(out));
  return copy_kernel(node, out, from);
}

Result<Kernel> make_reshape(const KernelRequest& node) {
  PFRT_TRY(need(node, 1, 1));
  const int64_t count = node.input_elements(0);
  if (count != node.output_elements(0))
    return kernel_error("input has ", count, " elements, output ", node.output_elements(0));
  const uint64_t size = tensor_bytes(node.input_dtype(0), count);
  if (size > static_cast<uint64_t>(INT64_MAX)) return kernel_error("the tensor is too large");
  const int64_t bytes = static_cast<int64_t>(size);
  Kernel kernel;
  kernel.may_alias = 0;
  kernel.run = [bytes](const Run& run) -> pfrt_code {
    copy_bytes(run, run.input(0), run.output(0), bytes);
    return run.stop();
  };
  return kernel;
}

Result<Kernel> make_transpose(const KernelRequest& node) {
  PFRT_TRY(need(node, 1, 1));
  const auto dims = node.input_dims(0);
  const auto given = node.attr_ints("perm");
  std::vector<int64_t> perm(given.begin(), given.end());
  if (perm.empty())
    for (size_t d = dims.size(); d-- > 0;) perm.push_back(static_cast<int64_t>(d));
  if (perm.size() != dims.size())
    return kernel_error("perm has ", perm.size(), " values for rank ", dims.size());
  std::vector<bool> seen(dims.size());
  std::vector<int64_t> out;
  for (int64_t& p : perm) {
    PFRT_ASSIGN(p, axis_of(p, dims.size()));
    if (seen[static_cast<size_t>(p)]) return kernel_error("perm names dimension ", p, " twice");
    seen[static_cast<size_t>(p)] = true;
    out.push_back(dims[static_cast<size_t>(p)]);
  }
  PFRT_TRY(need_output_dims(node, 0, out));
  return permute(node, dims, perm);
}

Result<Kernel> make_expand(const KernelRequest& node) {
  PFRT_TRY(need(node, 1, 1));
  const auto in = node.input_dims(0), out = node.output_dims(0);
  if (in.size() > out.size())
    return kernel_error("rank ", in.size(), " does not expand to rank ", out.size());
  const std::vector<int64_t> dense = dense_strides(in);
  std::vector<int64_t> strides(out.size(), 0);
  const size_t lead = out.size() - in.size();
  for (size_t d = 0; d < in.size(); ++d) {
    if (in[d] == 1) continue;
    if (in[d] != out[lead + d])
      return kernel_error("dimension ", in[d], " does not expand to ", out[lead + d]);
    strides[lead + d] = dense[d];
  }
  return copy_kernel(node, out, strides);
}

Result<Kernel> make_tile(const KernelRequest& node) {
  PFRT_TRY(need(node, 1, 1));
  const auto in = node.input_dims(0), out = node.output_dims(0);
  if (in.size() != out.size())
    return kernel_error("rank ", in.size(), " was planned as rank ", out.size());
  const std::vector<int64_t> dense = dense_strides(in);
  std::vector<int64_t> dims, strides;
  for (size_t d = 0; d < in.size(); ++d) {
    if (in[d] == 0 ? out[d] != 0 : out[d] % in[d] != 0)
      return kernel_error("dimension ", in[d], " cannot repeat to ", out[d]);
    dims.insert(dims.end(), {in[d] == 0 ? 0 : out[d] / in[d], in[d]});
    strides.insert(strides.end(), {0, dense[d]});
  }
  return copy_kernel(node, dims, strides);
}

}  // namespace pfrt::cpu
