// SPDX-License-Identifier: Apache-2.0
#include "plugins/import_onnx/type_info.h"

#include <charconv>

#include "core/base/dtype.h"
#include "plugins/import_onnx/host.h"

namespace pfrt::onnx {

Result<TypeInfo> TypeInfo::read(const wire::TypeProto& type, bool with_dim_names) {
  TypeInfo info;
  switch (type.value_case()) {
    case wire::TypeProto::kTensorType:
      info.kind_ = PFRT_VALUE_TENSOR;
      break;
    case wire::TypeProto::kSparseTensorType:
      info.kind_ = PFRT_VALUE_SPARSE;
      break;
    case wire::TypeProto::kSequenceType:
      info.kind_ = PFRT_VALUE_SEQUENCE;
      break;
    case wire::TypeProto::kMapType:
      info.kind_ = PFRT_VALUE_MAP;
      break;
    case wire::TypeProto::kOptionalType:
      info.kind_ = PFRT_VALUE_OPTIONAL;
      break;
    case wire::TypeProto::kOpaqueType:
      return error(Code::kUNSUPPORTED, "opaque type '", type.opaque_type().domain(), ".",
                   type.opaque_type().name(), "' has no meaning here");
    case wire::TypeProto::VALUE_NOT_SET:
      return info;
  }
  PFRT_TRY(info.read_elements(type, with_dim_names));
  return info;
}

Status TypeInfo::read_elements(const wire::TypeProto& type, bool with_dim_names) {
  switch (type.value_case()) {
    case wire::TypeProto::kTensorType: {
      const auto& tensor = type.tensor_type();
      return read_tensor(tensor.elem_type(), tensor.has_shape() ? &tensor.shape() : nullptr,
                         with_dim_names);
    }
    case wire::TypeProto::kSparseTensorType: {
      const auto& tensor = type.sparse_tensor_type();
      return read_tensor(tensor.elem_type(), tensor.has_shape() ? &tensor.shape() : nullptr,
                         with_dim_names);
    }
    case wire::TypeProto::kSequenceType:
      return read_elements(type.sequence_type().elem_type(), with_dim_names);
    case wire::TypeProto::kOptionalType:
      return read_elements(type.optional_type().elem_type(), with_dim_names);
    case wire::TypeProto::kMapType:
      key_dtype_ = static_cast<pfrt_dtype>(type.map_type().key_type());
      if (!dtype_known(key_dtype_))
        return error(Code::kUNSUPPORTED, "map key type ", type.map_type().key_type(),
                     " is not known");
      return read_elements(type.map_type().value_type(), with_dim_names);
    case wire::TypeProto::kOpaqueType:
      return error(Code::kUNSUPPORTED, "opaque element types have no meaning here");
    case wire::TypeProto::VALUE_NOT_SET:
      return {};
  }
  return {};
}

Status TypeInfo::read_tensor(int32_t elem_type, const wire::TensorShapeProto* shape,
                             bool with_dim_names) {
  dtype_ = static_cast<pfrt_dtype>(elem_type);
  if (elem_type != 0 && !dtype_known(dtype_))
    return error(Code::kUNSUPPORTED, "element type ", elem_type, " is not known to this version");
  if (!shape) return {};
  if (shape->dim_size() > static_cast<int>(kMaxRank))
    return error(Code::kINVALID_MODEL, "shape of ", shape->dim_size(), " dimensions; at most ",
                 kMaxRank, " are read");
  has_shape_ = true;
  for (const auto& dim : shape->dim()) {
    // Exporters write -1 for a dimension they do not know.
    dims_.push_back(dim.has_dim_value() && dim.dim_value() >= 0 ? dim.dim_value() : -1);
    dim_names_.push_back(dim.has_dim_param() && with_dim_names ? to_c(dim.dim_param())
                                                               : pfrt_string{});
  }
  return {};
}

pfrt_value_info TypeInfo::info(pfrt_string name) const {
  auto info = sized<pfrt_value_info>();
  info.kind = kind_;
  info.dtype = dtype_;
  info.key_dtype = key_dtype_;
  info.rank = has_shape_ ? static_cast<int32_t>(dims_.size()) : -1;
  info.name = name;
  info.dims = dims_.data();
  info.dim_names = dim_names_.data();
  return info;
}

namespace {

template <typename Tensor>
void write_tensor(const pfrt_value_info& info, Tensor* out) {
  out->set_elem_type(static_cast<int32_t>(info.dtype));
  if (info.rank < 0) return;
  auto* shape = out->mutable_shape();
  for (int32_t i = 0; i < info.rank; ++i) {
    auto* dim = shape->add_dim();
    if (info.dims[i] >= 0)
      dim->set_dim_value(info.dims[i]);
    else if (info.dim_names && info.dim_names[i].size)
      dim->set_dim_param(info.dim_names[i].data, info.dim_names[i].size);
  }
}

// A tensor, or a map where there is a key type.
void write_element(const pfrt_value_info& info, wire::TypeProto* out) {
  if (info.key_dtype == PFRT_DTYPE_UNSET) return write_tensor(info, out->mutable_tensor_type());
  out->mutable_map_type()->set_key_type(static_cast<int32_t>(info.key_dtype));
  write_tensor(info, out->mutable_map_type()->mutable_value_type()->mutable_tensor_type());
}

}  // namespace

void write_value_info(const pfrt_value_info& info, wire::ValueInfoProto* out) {
  out->set_name(info.name.data, info.name.size);
  // Readers find out by themselves what has no type, and refuse a type without elements.
  if (info.dtype == PFRT_DTYPE_UNSET) return;
  switch (info.kind) {
    case PFRT_VALUE_TENSOR:
      write_tensor(info, out->mutable_type()->mutable_tensor_type());
      break;
    case PFRT_VALUE_SPARSE:
      write_tensor(info, out->mutable_type()->mutable_sparse_tensor_type());
      break;
    case PFRT_VALUE_SEQUENCE:
      write_element(info, out->mutable_type()->mutable_sequence_type()->mutable_elem_type());
      break;
    case PFRT_VALUE_OPTIONAL:
      write_element(info, out->mutable_type()->mutable_optional_type()->mutable_elem_type());
      break;
    case PFRT_VALUE_MAP:
      write_element(info, out->mutable_type());
      break;
    default:
      break;
  }
}

namespace {

std::string shape_text(const wire::TensorShapeProto& shape) {
  std::string text = "[";
  for (const auto& dim : shape.dim()) {
    if (text.size() > 1) text += ',';
    const std::string& name = dim.dim_param();
    const bool plain = !name.empty() && name.find_first_of(",]") == std::string::npos;
    text += dim.has_dim_value() ? std::to_string(dim.dim_value()) : plain ? name : "?";
  }
  return text + "]";
}

std::string_view dtype_text(int32_t dtype) {
  return dtype_onnx_name(static_cast<pfrt_dtype>(dtype));
}

template <typename Tensor>
std::string tensor_text(std::string_view kind, const Tensor& tensor) {
  const std::string shape = tensor.has_shape() ? message(",", shape_text(tensor.shape())) : "";
  return message(kind, "(", dtype_text(tensor.elem_type()), shape, ")");
}

// Takes |prefix| off |text|.
bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

bool take_dtype(std::string_view& text, int32_t* out) {
  const std::string_view name = text.substr(0, text.find_first_of(",)"));
  *out = static_cast<int32_t>(dtype_from_name(name));
  text.remove_prefix(name.size());
  return *out != 0 || name == dtype_onnx_name(PFRT_DTYPE_UNSET);
}

bool take_shape(std::string_view& text, wire::TensorShapeProto* out) {
  if (take(text, "]")) return true;
  do {
    const std::string_view dim = text.substr(0, text.find_first_of(",]"));
    text.remove_prefix(dim.size());
    auto* to = out->add_dim();
    int64_t number = 0;
    const auto parsed = std::from_chars(dim.data(), dim.data() + dim.size(), number);
    if (!dim.empty() && parsed.ec == std::errc() && parsed.ptr == dim.data() + dim.size())
      to->set_dim_value(number);
    else if (dim != "?")
      to->set_dim_param(dim.data(), dim.size());
  } while (take(text, ","));
  return take(text, "]");
}

template <typename Tensor>
bool take_tensor(std::string_view& text, Tensor* out) {
  int32_t dtype = 0;
  if (!take_dtype(text, &dtype)) return false;
  out->set_elem_type(dtype);
  if (take(text, ",[") && !take_shape(text, out->mutable_shape())) return false;
  return take(text, ")");
}

bool take_type(std::string_view& text, wire::TypeProto* out, int depth) {
  if (depth > static_cast<int>(kMaxRank)) return false;
  if (take(text, "tensor(")) return take_tensor(text, out->mutable_tensor_type());
  if (take(text, "sparse_tensor(")) return take_tensor(text, out->mutable_sparse_tensor_type());
  if (take(text, "map(")) {
    int32_t key = 0;
    if (!take_dtype(text, &key) || !take(text, ",")) return false;
    out->mutable_map_type()->set_key_type(key);
    return take_type(text, out->mutable_map_type()->mutable_value_type(), depth + 1) &&
           take(text, ")");
  }
  if (take(text, "seq("))
    return take_type(text, out->mutable_sequence_type()->mutable_elem_type(), depth + 1) &&
           take(text, ")");
  if (take(text, "optional("))
    return take_type(text, out->mutable_optional_type()->mutable_elem_type(), depth + 1) &&
           take(text, ")");
  return false;
}

}  // namespace

std::string type_text(const wire::TypeProto& type) {
  switch (type.value_case()) {
    case wire::TypeProto::kTensorType:
      return tensor_text("tensor", type.tensor_type());
    case wire::TypeProto::kSparseTensorType:
      return tensor_text("sparse_tensor", type.sparse_tensor_type());
    case wire::TypeProto::kSequenceType:
      return message("seq(", type_text(type.sequence_type().elem_type()), ")");
    case wire::TypeProto::kMapType:
      return message("map(", dtype_text(type.map_type().key_type()), ",",
                     type_text(type.map_type().value_type()), ")");
    case wire::TypeProto::kOptionalType:
      return message("optional(", type_text(type.optional_type().elem_type()), ")");
    case wire::TypeProto::kOpaqueType:
      return message("opaque(", type.opaque_type().domain(), ",", type.opaque_type().name(), ")");
    case wire::TypeProto::VALUE_NOT_SET:
      break;
  }
  return "undefined";
}

Status parse_type(std::string_view text, wire::TypeProto* out) {
  std::string_view rest = text;
  if (take_type(rest, out, 0) && rest.empty()) return {};
  return error(Code::kINVALID_ARGUMENT, "'", text,
               "' is not a type; write it as \"tensor(float)\", \"seq(tensor(int64))\"");
}

}  // namespace pfrt::onnx
