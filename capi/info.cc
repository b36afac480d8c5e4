// SPDX-License-Identifier: Apache-2.0
#include "capi/handle/info.h"

#include "capi/handle/tensor.h"
#include "core/base/abi/sized.h"
#include "core/base/rank.h"

namespace pfrt::capi {

Status check_dims(std::string_view doing, const int64_t* dims, uint64_t rank) {
  if (rank > kMaxRank)
    return error(Code::kINVALID_ARGUMENT, doing, ": it has rank ", rank, "; at most ", kMaxRank,
                 " is possible");
  if (rank && !dims)
    return error(Code::kINVALID_ARGUMENT, doing, ": argument 'dims' is NULL, the rank is ", rank);
  return {};
}

Status check_dtype(std::string_view doing, pfrt_dtype dtype) {
  if (dtype == PFRT_DTYPE_UNSET)
    return error(Code::kINVALID_ARGUMENT, doing, ": its dtype is not set");
  return dtype_known(dtype) ? Status() : abi::unknown_number(doing, "dtype", dtype);
}

pfrt_value_info make_value_info(const PortInfo& port, InfoStorage& storage) {
  storage.name = port.name;
  storage.dims = port.dims;
  storage.names = port.dim_names;
  storage.name_views.clear();
  for (const std::string& name : storage.names) storage.name_views.push_back(to_c(name));
  pfrt_value_info info{};
  info.struct_size = sizeof info;
  info.kind = port.type.kind;
  info.dtype = port.type.dtype;
  info.key_dtype = port.type.key_dtype;
  info.rank = port.type.has_shape ? static_cast<int32_t>(port.dims.size()) : -1;
  info.name = to_c(storage.name);
  info.dims = storage.dims.data();
  info.dim_names = storage.name_views.data();
  info.has_initializer = port.has_initializer ? 1 : 0;
  return info;
}

Result<Type> type_from(const pfrt_value_info& info, SymbolTable& symbols) {
  Type type;
  type.kind = info.kind;
  if (info.kind == PFRT_VALUE_UNSET && info.dtype != PFRT_DTYPE_UNSET)
    type.kind = PFRT_VALUE_TENSOR;
  type.dtype = info.dtype;
  type.key_dtype = info.key_dtype;
  const std::string doing = message("describing value '", info.name, "'");
  if (info.kind > PFRT_VALUE_SPARSE) return abi::unknown_number(doing, "kind", info.kind);
  for (const pfrt_dtype dtype : {info.dtype, info.key_dtype})
    if (dtype != PFRT_DTYPE_UNSET) PFRT_TRY(check_dtype(doing, dtype));
  if (info.rank < 0) return type;
  PFRT_TRY(check_dims(doing, info.dims, static_cast<uint64_t>(info.rank)));
  type.has_shape = true;
  for (int32_t i = 0; i < info.rank; ++i) {
    if (info.dims[i] >= 0) {
      type.shape.emplace_back(info.dims[i]);
    } else {
      type.shape.push_back(info.dim_names ? symbols.symbol(view(info.dim_names[i])) : Dim());
    }
  }
  return type;
}

}  // namespace pfrt::capi
