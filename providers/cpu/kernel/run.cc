// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernel/run.h"

namespace pfrt::cpu {

void* Run::alloc_output(uint32_t i, std::span<const int64_t> dims) const {
  if (outputs_[i] == PFRT_NO_INDEX) return nullptr;
  void* data = nullptr;
  const pfrt_code code = context_->alloc_output(context_, outputs_[i], dims.data(),
                                                static_cast<uint32_t>(dims.size()), &data);
  static char nothing;
  if (code == PFRT_CODE_OK && data == nullptr) data = &nothing;  // no bytes wanted, none needed
  return code == PFRT_CODE_OK ? data : nullptr;
}

}  // namespace pfrt::cpu
