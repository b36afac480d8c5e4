// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/page/describe.h"

#include <algorithm>
#include <cstdio>

#include "cxxapi/cli/page/markup.h"
#include "cxxapi/cli/print/text.h"
#include "cxxapi/cli/tensors/elements.h"

namespace cli {
namespace {

using pyflame_rt::api;
using pyflame_rt::NodeArg;
using pyflame_rt::Tensor;
using pyflame_rt::Value;
using pyflame_rt::ValueKind;

constexpr size_t kTextLimit = 200, kElementLimit = 24, kListLimit = 32;
constexpr int64_t kFew = 8, kVeryFew = 3;

std::string real_text(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.6g", value);
  return text;
}

// Writes the first items of a list; |item(i)| is the text of one.
template <class Item>
std::string list_text(size_t count, Item item) {
  std::string out = "[";
  for (size_t i = 0; i < std::min(count, kListLimit); ++i) out += (i == 0 ? "" : ", ") + item(i);
  return out + (count > kListLimit ? ", ... " + std::to_string(count) + " in all]" : "]");
}

std::string elements_text(const Tensor& tensor) {
  std::string out;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    out += (i == 0 ? "" : ", ") + clean(text_at(tensor, i), kElementLimit);
  }
  return out;
}

std::string tensor_text(const Tensor& tensor) {
  std::string out = std::string(dtype_name(tensor.dtype())) + " " + shape_text(tensor.shape());
  if (tensor.num_elements() > 0 && tensor.num_elements() <= kFew) {
    out += " = " + elements_text(tensor);
  }
  return clean(out, kTextLimit);
}

Value share(pfrt_value* value) {
  return Value::from_handle(pyflame_rt::detail::Handle<pfrt_value>::share(value));
}

}  // namespace

std::string type_text(const pyflame_rt::Graph& graph, std::string_view value) {
  pfrt_value_info c{};
  c.struct_size = sizeof(c);
  pfrt_status* const status =
      api().graph->value_info(graph.handle(), {value.data(), value.size()}, &c);
  if (status != nullptr) {
    api().status->release(status);
    return {};
  }
  const NodeArg arg(pyflame_rt::detail::info_from_c(c));
  const bool typed = arg.dtype != pyflame_rt::DType::Undefined || arg.kind == ValueKind::Map;
  if (!typed && arg.unranked) return {};
  const std::string type = arg.kind == ValueKind::Tensor ? dtype_name(arg.dtype) : arg.type();
  return clean((typed ? type : "?") + " " + shape_text(arg), kTextLimit);
}

ConstantText constant_text(pfrt_value* value) {
  const Value shared = share(value);
  if (!shared.is_tensor()) return {"constant, sparse", "sparse"};
  const Tensor tensor = shared.tensor();
  const bool shown = tensor.num_elements() > 0 && tensor.num_elements() <= kVeryFew;
  return {"constant " + tensor_text(tensor),
          clean(shown ? elements_text(tensor) : shape_text(tensor.shape()), kTextLimit)};
}

std::string attribute_text(const pfrt_attr& a) {
  switch (a.type) {
    case PFRT_ATTR_INT:
      return std::to_string(a.i);
    case PFRT_ATTR_FLOAT:
      return real_text(static_cast<double>(a.f));
    case PFRT_ATTR_STRING:
      return "\"" + clean(view(a.s), kTextLimit) + "\"";
    case PFRT_ATTR_INTS:
      return list_text(a.count, [&](size_t i) { return std::to_string(a.ints[i]); });
    case PFRT_ATTR_FLOATS:
      return list_text(a.count,
                       [&](size_t i) { return real_text(static_cast<double>(a.floats[i])); });
    case PFRT_ATTR_STRINGS:
      return list_text(a.count, [&](size_t i) {
        return "\"" + clean(view(a.strings[i]), kElementLimit) + "\"";
      });
    case PFRT_ATTR_TENSOR:
      return tensor_text(share(a.tensor).tensor());
    case PFRT_ATTR_TENSORS:
      return std::to_string(a.count) + " tensors";
    case PFRT_ATTR_GRAPH:
      return "a body";
    case PFRT_ATTR_GRAPHS:
      return std::to_string(a.count) + " bodies";
    case PFRT_ATTR_SPARSE:
      return "a sparse tensor";
    case PFRT_ATTR_TYPE:
      return clean(view(a.s), kTextLimit);
    default:
      return "of an unknown type";
  }
}

}  // namespace cli
