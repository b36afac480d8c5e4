// SPDX-License-Identifier: Apache-2.0
#include "plugins/import_onnx/denotations.h"

#include <vector>

namespace pfrt::onnx {
namespace {

// The shape of the tensor, or of the elements; null where there is none.
const wire::TensorShapeProto* shape_of(const wire::TypeProto& type) {
  switch (type.value_case()) {
    case wire::TypeProto::kTensorType:
      return type.tensor_type().has_shape() ? &type.tensor_type().shape() : nullptr;
    case wire::TypeProto::kSparseTensorType:
      return type.sparse_tensor_type().has_shape() ? &type.sparse_tensor_type().shape() : nullptr;
    case wire::TypeProto::kSequenceType:
      return shape_of(type.sequence_type().elem_type());
    case wire::TypeProto::kOptionalType:
      return shape_of(type.optional_type().elem_type());
    case wire::TypeProto::kMapType:
      return shape_of(type.map_type().value_type());
    default:
      return nullptr;
  }
}

void append_escaped(std::string* out, const std::string& text) {
  for (const char c : text) {
    if (c == ',')
      *out += "%2C";
    else if (c == '%')
      *out += "%25";
    else
      *out += c;
  }
}

std::string plain(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view code = text.substr(i, 3);
    if (code == "%2C" || code == "%25") {
      out += code == "%2C" ? ',' : '%';
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace

std::string denotations_of(const wire::TypeProto& type) {
  bool any = type.has_denotation();
  std::string out;
  append_escaped(&out, type.denotation());
  if (const wire::TensorShapeProto* shape = shape_of(type)) {
    for (const auto& dim : shape->dim()) {
      any |= dim.has_denotation();
      out += ',';
      append_escaped(&out, dim.denotation());
    }
  }
  return any ? out : std::string();
}

void write_denotations(std::string_view text, wire::TypeProto* out) {
  std::vector<std::string> parts;
  for (size_t at = 0; at != std::string_view::npos;) {
    const size_t comma = text.find(',', at);
    parts.push_back(plain(text.substr(at, comma - at)));
    at = comma == std::string_view::npos ? comma : comma + 1;
  }
  if (!parts[0].empty()) out->set_denotation(parts[0]);
  // The type was made by this call's caller.
  auto* shape = const_cast<wire::TensorShapeProto*>(shape_of(*out));
  if (!shape || static_cast<size_t>(shape->dim_size()) + 1 != parts.size()) return;
  for (int i = 0; i < shape->dim_size(); ++i)
    if (const std::string& part = parts[static_cast<size_t>(i) + 1]; !part.empty())
      shape->mutable_dim(i)->set_denotation(part);
}

}  // namespace pfrt::onnx
