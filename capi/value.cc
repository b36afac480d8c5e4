// SPDX-License-Identifier: Apache-2.0
#include "capi/handle/value.h"

#include "capi/handle/counted.h"
#include "capi/handle/guard.h"
#include "capi/handle/plugin_scope.h"
#include "capi/handle/slots.h"
#include "capi/handle/tensor.h"
#include "core/ir/graph.h"

pfrt_value::~pfrt_value() {
  for (auto& [part, handle] : children) pfrt::capi::release(handle);
  pfrt::capi::release(sparse_values);
  pfrt::capi::release(sparse_indices);
}

pfrt_value* pfrt_value::child(const pfrt::ValuePtr& part) {
  std::lock_guard lock(mutex);
  pfrt_value*& handle = children[part.get()];
  if (!handle) handle = new pfrt_value(part);
  return handle;
}

namespace pfrt::capi {
namespace {

Status check_view(const pfrt_tensor& t) {
  PFRT_TRY(check_dtype("viewing a tensor", t.dtype));
  PFRT_TRY(check_dims("viewing a tensor", t.dims, t.rank));
  if (t.dtype == PFRT_DTYPE_STRING && t.strides)
    return error(Code::kUNSUPPORTED, "viewing a tensor: strings cannot have strides");
  return {};
}

// Copies |from| with any strides to row-major |to|.
void gather(const char* from, const int64_t* dims, const int64_t* strides, uint32_t rank,
            size_t element, char*& to) {
  if (rank == 0) {
    std::memcpy(to, from, element);
    to += element;
    return;
  }
  for (int64_t i = 0; i < dims[0]; ++i)
    gather(from + i * strides[0] * static_cast<int64_t>(element), dims + 1, strides + 1, rank - 1,
           element, to);
}

// Returns the bytes from the first to past the last element; fails where a stride is negative.
Result<uint64_t> strided_bytes(const pfrt_tensor& t, size_t element) {
  uint64_t last = 0;
  for (uint32_t i = 0; i < t.rank; ++i) {
    if (t.dims[i] == 0) return uint64_t{0};
    uint64_t step = 0;
    if (t.strides[i] < 0 ||
        __builtin_mul_overflow(static_cast<uint64_t>(t.dims[i] - 1),
                               static_cast<uint64_t>(t.strides[i]), &step) ||
        __builtin_add_overflow(last, step, &last))
      return error(Code::kINVALID_ARGUMENT, "a tensor view has stride ", t.strides[i],
                   "; strides are not negative");
  }
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(last + 1, static_cast<uint64_t>(element), &bytes))
    return error(Code::kINVALID_ARGUMENT, "a tensor view's strides overflow");
  return bytes;
}

pfrt_status* create_tensor(pfrt_dtype dtype, const int64_t* dims, size_t rank, pfrt_value** out) {
  return guard([&]() -> Status {
    if (!out) return null_argument("out_value");
    *out = nullptr;
    PFRT_TRY(check_dtype("creating a tensor", dtype));
    PFRT_TRY(check_dims("creating a tensor", dims, rank));
    PFRT_ASSIGN(Tensor tensor, Tensor::allocate(dtype, Dims(dims, dims + rank)));
    *out = new pfrt_value(Value::of(std::move(tensor)));
    return {};
  });
}

pfrt_status* wrap_tensor(const pfrt_tensor* tensor, pfrt_release_fn release_fn, void* user,
                         pfrt_value** out) {
  return guard([&]() -> Status {
    auto keep = release_later(release_fn, user, tensor ? tensor->data : nullptr);
    if (!tensor || !out) return null_argument(tensor ? "out_value" : "tensor");
    *out = nullptr;
    PFRT_ASSIGN(const pfrt_tensor t, read(tensor));
    if (t.strides)
      return error(Code::kUNSUPPORTED,
                   "wrapping a tensor: only row-major memory without strides can be wrapped");
    PFRT_ASSIGN(Tensor made, tensor_from(t, true, [keep] {}));
    *out = new pfrt_value(Value::of(std::move(made)));
    return {};
  });
}

pfrt_value_kind kind(const pfrt_value* value) {
  if (!value) return PFRT_VALUE_UNSET;
  return value->value->kind;
}

pfrt_status* tensor_view(const pfrt_value* value, pfrt_tensor* out) {
  return guard([&]() -> Status {
    if (!value || !out) return null_argument(value ? "out_tensor" : "value");
    if (value->value->kind != PFRT_VALUE_TENSOR)
      return error(Code::kINVALID_ARGUMENT, "viewing a value as a tensor: it is not one");
    return write(out, view_of(value->value->tensor));
  });
}

pfrt_status* set_string(pfrt_value* value, uint64_t index, pfrt_string text) {
  return guard([&]() -> Status {
    if (!value) return null_argument("value");
    const Tensor& t = value->value->tensor;
    if (t.dtype != PFRT_DTYPE_STRING || !t.buffer || index >= static_cast<uint64_t>(t.count()))
      return error(Code::kINVALID_ARGUMENT, "setting string ", index,
                   ": the value has no such string");
    return t.buffer->set_string(index, view(text));
  });
}

pfrt_status* count(const pfrt_value* value, size_t* out) {
  return guard([&]() -> Status {
    if (!value || !out) return null_argument(value ? "out_count" : "value");
    *out = 0;
    const Value& v = *value->value;
    switch (v.kind) {
      case PFRT_VALUE_SEQUENCE:
      case PFRT_VALUE_OPTIONAL:
        *out = v.elements.size();
        return {};
      case PFRT_VALUE_MAP:
        *out = static_cast<size_t>(v.keys->tensor.count());
        return {};
      default:
        return error(Code::kINVALID_ARGUMENT,
                     "counting elements: the value is not a sequence, map or optional");
    }
  });
}

pfrt_status* element(const pfrt_value* value, size_t index, pfrt_value** out) {
  return guard([&]() -> Status {
    if (!value || !out) return null_argument(value ? "out_element" : "value");
    *out = nullptr;
    const Value& v = *value->value;
    if (v.kind != PFRT_VALUE_SEQUENCE && v.kind != PFRT_VALUE_OPTIONAL)
      return error(Code::kINVALID_ARGUMENT,
                   "taking an element: the value is not a sequence or optional");
    if (index >= v.elements.size())
      return error(Code::kINVALID_ARGUMENT, "taking element ", index, " of ", v.elements.size());
    *out = const_cast<pfrt_value*>(value)->child(v.elements[index]);
    return {};
  });
}

// All that walks through values goes down in them.
constexpr uint32_t kDeepest = 64;

Status check_nesting(const Value& element, const char* doing) {
  if (element.nesting < kDeepest) return {};
  return error(Code::kINVALID_ARGUMENT, doing, ": its element has ", element.nesting,
               " levels of sequences and optionals within, and that is as many as there may be");
}

pfrt_status* create_sequence(pfrt_dtype dtype, pfrt_value* const* elements, size_t n,
                             pfrt_value** out) {
  return guard([&]() -> Status {
    if (!out) return null_argument("out_value");
    *out = nullptr;
    if (dtype != PFRT_DTYPE_UNSET) PFRT_TRY(check_dtype("creating a sequence", dtype));
    std::vector<ValuePtr> list;
    for (size_t i = 0; i < n; ++i) {
      if (!elements || !elements[i]) return null_argument("elements");
      PFRT_TRY(need_host(*elements[i]->value, "creating a sequence"));
      PFRT_TRY(check_nesting(*elements[i]->value, "creating a sequence"));
      list.push_back(elements[i]->value);
    }
    *out = new pfrt_value(Value::sequence(std::move(list), dtype));
    return {};
  });
}

pfrt_status* create_optional(pfrt_value* inner, pfrt_value** out) {
  return guard([&]() -> Status {
    if (!out) return null_argument("out_value");
    *out = nullptr;
    if (inner) {
      PFRT_TRY(need_host(*inner->value, "creating an optional"));
      PFRT_TRY(check_nesting(*inner->value, "creating an optional"));
    }
    *out = new pfrt_value(Value::optional(inner ? inner->value : nullptr));
    return {};
  });
}

pfrt_status* create_map(pfrt_value* keys, pfrt_value* values, pfrt_value** out) {
  return guard([&]() -> Status {
    if (!keys || !values || !out)
      return null_argument(!keys ? "keys" : !values ? "values" : "out_value");
    *out = nullptr;
    const Value &k = *keys->value, &v = *values->value;
    PFRT_TRY(need_host(k, "creating a map"));
    PFRT_TRY(need_host(v, "creating a map"));
    if (k.kind != PFRT_VALUE_TENSOR || v.kind != PFRT_VALUE_TENSOR || k.tensor.dims.size() != 1 ||
        v.tensor.dims.empty() || v.tensor.dims[0] != k.tensor.dims[0])
      return error(
          Code::kINVALID_ARGUMENT,
          "creating a map: keys must be a rank-1 tensor and values a tensor with as many rows");
    if (k.tensor.dtype != PFRT_DTYPE_STRING && !dtype_is_integer(k.tensor.dtype))
      return error(Code::kINVALID_ARGUMENT,
                   "creating a map: keys must be strings or integers, not ",
                   dtype_name(k.tensor.dtype));
    auto value = std::make_shared<Value>();
    value->kind = PFRT_VALUE_MAP;
    value->keys = keys->value;
    value->values = values->value;
    *out = new pfrt_value(std::move(value));
    return {};
  });
}

pfrt_status* map_parts(const pfrt_value* value, pfrt_value** out_keys, pfrt_value** out_values) {
  return guard([&]() -> Status {
    if (!value || !out_keys || !out_values) return null_argument("value, out_keys or out_values");
    *out_keys = *out_values = nullptr;
    if (value->value->kind != PFRT_VALUE_MAP)
      return error(Code::kINVALID_ARGUMENT, "taking a map's parts: the value is not a map");
    auto* self = const_cast<pfrt_value*>(value);
    *out_keys = self->child(value->value->keys);
    *out_values = self->child(value->value->values);
    return {};
  });
}

pfrt_status* create_sparse(pfrt_value* values, pfrt_value* indices, const int64_t* dims,
                           size_t rank, pfrt_value** out) {
  return guard([&]() -> Status {
    if (!values || !indices || !out) return null_argument("values, indices or out_value");
    *out = nullptr;
    PFRT_TRY(check_dims("creating a sparse tensor", dims, rank));
    PFRT_TRY(need_host(*values->value, "creating a sparse tensor"));
    PFRT_TRY(need_host(*indices->value, "creating a sparse tensor"));
    const Tensor &v = values->value->tensor, &i = indices->value->tensor;
    const bool shapes_fit =
        v.dims.size() == 1 && i.dtype == PFRT_DTYPE_INT64 && !i.dims.empty() &&
        i.dims[0] == v.dims[0] &&
        (i.dims.size() == 1 || (i.dims.size() == 2 && i.dims[1] == static_cast<int64_t>(rank)));
    if (!shapes_fit)
      return error(Code::kINVALID_ARGUMENT,
                   "creating a sparse tensor: values must be [nnz], indices int64 [nnz] or [nnz,",
                   rank, "]");
    auto value = std::make_shared<Value>();
    value->kind = PFRT_VALUE_SPARSE;
    value->tensor = v;
    value->indices = i;
    value->dense_dims.assign(dims, dims + rank);
    *out = new pfrt_value(std::move(value));
    return {};
  });
}

pfrt_status* sparse_parts(const pfrt_value* value, pfrt_value** out_values,
                          pfrt_value** out_indices, const int64_t** out_dims, size_t* out_rank) {
  return guard([&]() -> Status {
    if (!value || !out_values || !out_indices || !out_dims || !out_rank)
      return null_argument("value or an out-parameter");
    *out_values = *out_indices = nullptr;
    *out_dims = nullptr;
    *out_rank = 0;
    const Value& v = *value->value;
    if (v.kind != PFRT_VALUE_SPARSE)
      return error(Code::kINVALID_ARGUMENT, "taking a sparse tensor's parts: the value is not one");
    auto* self = const_cast<pfrt_value*>(value);
    {
      std::lock_guard lock(self->mutex);
      if (!self->sparse_values) self->sparse_values = new pfrt_value(Value::of(v.tensor));
      if (!self->sparse_indices) self->sparse_indices = new pfrt_value(Value::of(v.indices));
    }
    *out_values = self->sparse_values;
    *out_indices = self->sparse_indices;
    *out_dims = v.dense_dims.data();
    *out_rank = v.dense_dims.size();
    return {};
  });
}

pfrt_dtype dtype(const pfrt_value* value) {
  if (!value) return PFRT_DTYPE_UNSET;
  return type_of(*value->value).dtype;
}

bool aligned(const pfrt_tensor& t) {
  const size_t element = std::clamp<size_t>(dtype_size(t.dtype), 1, 8);
  return reinterpret_cast<uintptr_t>(t.data) % element == 0;
}

// Returns a tensor of |t|'s type and dimensions, after checks that |t| has memory for them.
Result<Tensor> described(pfrt_tensor& t) {
  PFRT_TRY(settle_view(t));
  PFRT_TRY(check_view(t));
  Tensor tensor;
  tensor.dtype = t.dtype;
  tensor.dims.assign(t.dims, t.dims + t.rank);
  const int64_t n = tensor.count();
  const uint64_t bytes = tensor.bytes();
  if (n < 0 || bytes == UINT64_MAX)
    return error(Code::kSHAPE_MISMATCH, "a tensor view has a negative or an overflowing dimension");
  const size_t element = dtype_size(t.dtype);
  if (t.strides && element == 0)
    return error(Code::kUNSUPPORTED, "a view of packed ", dtype_name(t.dtype),
                 " cannot have strides");
  uint64_t needed = bytes;
  if (t.strides) {
    PFRT_ASSIGN(needed, strided_bytes(t, element));
  }
  if (needed > t.bytes)
    return error(Code::kSHAPE_MISMATCH, "a tensor view of ", n, " ", dtype_name(t.dtype), " needs ",
                 needed, " bytes, its memory has ", t.bytes);
  if (needed > 0 && !t.data)
    return error(Code::kINVALID_ARGUMENT, "a tensor view of ", n, " elements has no data");
  return tensor;
}

pfrt_status* wrap_unaligned(const pfrt_tensor* tensor, pfrt_release_fn release_fn, void* user,
                            pfrt_value** out) {
  return guard([&]() -> Status {
    auto keep = release_later(release_fn, user, tensor ? tensor->data : nullptr);
    if (!tensor || !out) return null_argument(tensor ? "out_value" : "tensor");
    *out = nullptr;
    PFRT_ASSIGN(pfrt_tensor t, read(tensor));
    if (t.strides || t.dtype == PFRT_DTYPE_STRING)
      return error(Code::kUNSUPPORTED, "wrapping an unaligned tensor: ",
                   t.strides ? "only row-major memory without strides" : "no strings",
                   " can be wrapped");
    PFRT_ASSIGN(Tensor made, described(t));
    const auto wrap = aligned(t) ? &Buffer::wrap : &Buffer::unaligned;
    PFRT_ASSIGN(made.buffer, wrap(t.data, made.bytes(), [keep] {}));
    *out = new pfrt_value(Value::of(std::move(made)));
    return {};
  });
}

}  // namespace

Result<Tensor> tensor_from(pfrt_tensor t, bool borrow, std::function<void()> on_release) {
  PFRT_ASSIGN(Tensor tensor, described(t));
  const size_t element = dtype_size(t.dtype);
  if (borrow && !t.strides) {
    if (!aligned(t))
      return error(Code::kINVALID_ARGUMENT,
                   "a tensor view's memory is not aligned for elements of ", element, " bytes");
    PFRT_ASSIGN(tensor.buffer, Buffer::wrap(t.data, tensor.bytes(), std::move(on_release)));
    return tensor;
  }
  if (!t.strides) return Tensor::copy_of(t.dtype, std::move(tensor.dims), t.data);
  PFRT_ASSIGN(Tensor copy, Tensor::allocate(t.dtype, tensor.dims));
  if (tensor.count() > 0) {
    char* to = copy.as<char>();
    gather(static_cast<const char*>(t.data), t.dims, t.strides, t.rank, element, to);
  }
  return copy;
}

Status settle_view(pfrt_tensor& t) {
  PFRT_TRY(abi::check(t));
  if (t.quantization || t.extension)
    return error(Code::kUNSUPPORTED, "a tensor view has ",
                 t.quantization ? "a quantization" : "an extension",
                 ", which this version does not take; set it to NULL");
  if (t.memory != PFRT_MEMORY_HOST)
    return error(
        Code::kUNSUPPORTED, "a tensor view is in memory kind ", t.memory,
        "; only host memory is possible, memory of a device is given as a value made there");
  if (t.data) t.data = static_cast<char*>(t.data) + t.offset;
  t.offset = 0;
  return {};
}

pfrt_tensor view_of(const Tensor& tensor) {
  pfrt_tensor t{};
  t.struct_size = sizeof t;
  t.dtype = tensor.dtype;
  t.rank = static_cast<uint32_t>(tensor.dims.size());
  t.data = tensor.data();
  t.bytes = tensor.bytes();
  t.dims = tensor.dims.data();
  if (const Device* device = tensor.device()) {
    t.memory = PFRT_MEMORY_DEVICE;
    t.device = device->number();
    t.data = tensor.buffer->data();
    t.offset = tensor.offset;
  }
  return t;
}

const pfrt_value_api kValueApi = {
    sizeof(pfrt_value_api),
    PFRT_ABI_VERSION,
    retain<pfrt_value>,
    last_call<release<pfrt_value>, pfrt_value>,
    kind,
    create_tensor,
    wrap_tensor,
    tensor_view,
    set_string,
    count,
    element,
    create_sequence,
    create_optional,
    create_map,
    map_parts,
    create_sparse,
    sparse_parts,
    dtype,
    create_on,
    copy_value,
    wrap_unaligned,
    create_strings,
    strings,
    value_parts,
};

}  // namespace pfrt::capi
