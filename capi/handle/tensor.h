// SPDX-License-Identifier: Apache-2.0
//
// Tensors as clients describe them. Pure; thread-safe.
#pragma once

#include <functional>
#include <string_view>

#include "core/memory/tensor.h"
#include "pyflame_rt/pyflame_rt.h"

namespace pfrt::capi {

// Refuses dimensions that cannot be read: too many, or none at |dims|.
Status check_dims(std::string_view doing, const int64_t* dims, uint64_t rank);
// Refuses an element type that is not set, or none of this version's.
Status check_dtype(std::string_view doing, pfrt_dtype dtype);
// Refuses a tensor on a device where its bytes are to be read.
Status need_host(const Value& value, std::string_view doing);
// Refuses a view with contents that this version does not know; adds its offset to |data|.
Status settle_view(pfrt_tensor& view);
Result<Tensor> tensor_from(pfrt_tensor view, bool borrow, std::function<void()> release);
pfrt_tensor view_of(const Tensor& tensor);

}  // namespace pfrt::capi
