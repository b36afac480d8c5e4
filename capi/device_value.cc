// SPDX-License-Identifier: Apache-2.0
//
// Values in the memory of devices: they are made, copied from and to, and refused where bytes are
// read.
#include "capi/handle/guard.h"
#include "capi/handle/session.h"
#include "capi/handle/slots.h"
#include "capi/handle/tensor.h"
#include "capi/handle/value.h"

namespace pfrt::capi {

Status need_host(const Value& value, std::string_view doing) {
  if (!value.tensor.device()) return {};
  return error(Code::kINVALID_ARGUMENT, doing,
               ": the tensor lives on a device; copy it to one in host memory first");
}

pfrt_status* create_on(pfrt_session* session, pfrt_string provider, pfrt_dtype dtype,
                       const int64_t* dims, size_t rank, pfrt_value** out) {
  return guard([&]() -> Status {
    if (!session || !out) return null_argument(session ? "out_value" : "session");
    *out = nullptr;
    PFRT_TRY(check_dtype("creating a tensor on a device", dtype));
    PFRT_TRY(check_dims("creating a tensor on a device", dims, rank));
    PFRT_ASSIGN(auto device, session->session->device_of(view(provider)));
    PFRT_ASSIGN(Tensor tensor,
                Tensor::allocate_on(std::move(device), dtype, Dims(dims, dims + rank)));
    *out = new pfrt_value(Value::of(std::move(tensor)));
    return {};
  });
}

pfrt_status* copy_value(const pfrt_value* from, pfrt_value* to) {
  return guard([&]() -> Status {
    if (!from || !to) return null_argument(from ? "to" : "from");
    if (from->value->kind != PFRT_VALUE_TENSOR || to->value->kind != PFRT_VALUE_TENSOR)
      return error(Code::kINVALID_ARGUMENT, "copying a value: both must be tensors");
    const Tensor &source = from->value->tensor, &target = to->value->tensor;
    if (source.dtype != target.dtype || source.dtype == PFRT_DTYPE_STRING)
      return error(Code::kDTYPE_MISMATCH, "copying a value: a tensor of ", dtype_name(source.dtype),
                   " to one of ", dtype_name(target.dtype),
                   "; they must be the same, and not strings");
    if (source.bytes() != target.bytes())
      return error(Code::kSHAPE_MISMATCH, "copying a value: ", source.bytes(), " bytes to ",
                   target.bytes());
    if (!source.device() && !target.device()) {
      if (source.bytes()) std::memmove(target.data(), source.data(), source.bytes());
      return {};
    }
    Transfers transfers;
    transfers.add(target.data(), target.device(), source.data(), source.device(), source.bytes());
    return transfers.run_alone();
  });
}

}  // namespace pfrt::capi
