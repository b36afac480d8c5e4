// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernel/data_dependent_output.h"

#include "providers/cpu/kernel/signature.h"

namespace pfrt::cpu {

Outlet::Outlet(const SnapshotNode& node, uint32_t output)
    : output_(output),
      dtype_(node.output_dtype(output)),
      wanted_(node.has_output(output)),
      known_(wanted_ && node.output_rank(output) >= 0 && node.output_elements(output) >= 0) {
  if (known_) dims_.assign(node.output_dims(output).begin(), node.output_dims(output).end());
}

pfrt_code Outlet::open(const Run& run, std::span<const int64_t> dims, void** out) const {
  *out = nullptr;
  if (!wanted_) return PFRT_CODE_OK;
  const int64_t count = element_count(dims.data(), dims.size());
  if (count < 0 || tensor_bytes(dtype_, count) > static_cast<uint64_t>(INT64_MAX))
    return run.fail(Code::kOUT_OF_MEMORY, "output ", output_, " would be too large to address");
  if (known_) {
    if (!same_dims(dims, dims_))
      return run.fail(Code::kSHAPE_MISMATCH, "output ", output_, " is ", dims_text(dims),
                      ", it was planned as ", dims_text(dims_));
    *out = run.output(output_);
    return PFRT_CODE_OK;
  }
  *out = run.alloc_output(output_, dims);
  if (!*out && count > 0)
    return run.fail(Code::kOUT_OF_MEMORY, "no memory for the ", count, " elements of output ",
                    output_);
  return PFRT_CODE_OK;
}

}  // namespace pfrt::cpu
