// SPDX-License-Identifier: Apache-2.0
#include "core/model/ports.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory_resource>

#include "core/ir/verify.h"

namespace pfrt {
namespace {

std::string shape_text(const std::vector<int64_t>& dims, const std::vector<std::string>& names) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) {
    const bool named = dims[i] < 0 && i < names.size() && !names[i].empty();
    text += (i ? "," : "") + (named         ? names[i]
                              : dims[i] < 0 ? std::string("?")
                                            : std::to_string(dims[i]));
  }
  return text + "]";
}

void name_dims(const Graph& graph, const Type& declared, PortInfo& info) {
  if (!info.type.is_tensor() || !declared.is_tensor() || !declared.has_shape) return;
  if (!info.type.has_shape) {
    info.type.has_shape = true;
    info.type.shape.assign(declared.shape.size(), Dim());
    info.dims.assign(declared.shape.size(), -1);
    info.dim_names.resize(declared.shape.size());
  }
  for (size_t i = 0; i < info.dims.size() && info.dims.size() == declared.shape.size(); ++i)
    if (info.dims[i] < 0 && info.dim_names[i].empty())
      info.dim_names[i] = graph.symbols->given_name(declared.shape[i]);
}

// Keeps only the facts that hold without the model's defaults, since other values may be fed.
void keep_known(const Type& known, PortInfo& info) {
  if (!info.type.is_tensor() || !known.is_tensor() || !info.type.has_shape) return;
  if (!known.has_shape || known.shape.size() != info.dims.size()) {
    info.type.has_shape = false;
    info.type.shape.clear();
    info.dims.clear();
    info.dim_names.clear();
    return;
  }
  for (size_t i = 0; i < info.dims.size(); ++i) {
    if (info.dims[i] < 0 || known.shape[i].known()) continue;
    info.dims[i] = -1;
    info.type.shape[i] = Dim();
  }
}

}  // namespace

PortInfo port_info(const Graph& graph, ValueId id) {
  const GraphValue& v = graph.at(id);
  PortInfo info;
  info.name = v.name;
  info.type = graph.fed_type(id);
  info.has_initializer = v.constant != nullptr;
  for (const Dim& d : info.type.shape) {
    info.dims.push_back(d.known() ? d.value() : -1);
    info.dim_names.push_back(graph.symbols->given_name(d));
  }
  return info;
}

PortInfo port_info(const Graph& graph, ValueId planned, const Graph& model, ValueId declared) {
  PortInfo info = port_info(graph, planned);
  info.name = model.at(declared).name;
  const bool defaults = std::ranges::any_of(
      model.inputs, [&](ValueId input) { return model.at(input).constant != nullptr; });
  if (defaults) keep_known(model.at(declared).type, info);
  name_dims(model, model.at(declared).type, info);
  return info;
}

Status check_inputs(const std::vector<PortInfo>& ports, size_t required, const SymbolTable& symbols,
                    const std::vector<ValuePtr>& inputs, std::string* out_differ) {
  struct Named {
    const std::string *symbol, *input;  // and the input that gave its size
    int64_t size;
  };
  std::array<std::byte, 1024> near;
  std::pmr::monotonic_buffer_resource memory(near.data(), near.size());
  std::pmr::vector<Named> named(&memory);
  for (size_t i = 0; i < ports.size(); ++i) {
    const PortInfo& port = ports[i];
    const Value* value = inputs[i].get();
    if (!value) {
      if (i < required)
        return error(Code::kINPUT, "running: input '", port.name, "' (",
                     type_text(port.type, symbols), ") was not given");
      continue;
    }
    if (port.type.kind == PFRT_VALUE_UNSET) continue;
    if (value->kind != port.type.kind && port.type.kind != PFRT_VALUE_OPTIONAL)
      return error(Code::kINPUT, "running: input '", port.name, "' is not a ",
                   type_text(port.type, symbols));
    if (value->kind != PFRT_VALUE_TENSOR || port.type.kind != PFRT_VALUE_TENSOR) continue;
    const Tensor& t = value->tensor;
    if (t.dtype != port.type.dtype && port.type.dtype != PFRT_DTYPE_UNSET)
      return error(Code::kDTYPE_MISMATCH, "running: input '", port.name, "' expects ",
                   dtype_name(port.type.dtype), ", got ", dtype_name(t.dtype));
    if (!port.type.has_shape) continue;
    const auto mismatch = [&](const std::string& detail) {
      return error(Code::kSHAPE_MISMATCH, "running: input '", port.name, "' expects ",
                   shape_text(port.dims, port.dim_names), ", got ", shape_text(t.dims, {}), detail);
    };
    if (t.dims.size() != port.dims.size())
      return mismatch(message(" (rank ", t.dims.size(), " instead of ", port.dims.size(), ")"));
    for (size_t d = 0; d < port.dims.size(); ++d) {
      if (port.dims[d] >= 0 && port.dims[d] != t.dims[d])
        return mismatch(message(" (dimension ", d, " differs)"));
      if (port.dims[d] >= 0 || port.dim_names[d].empty()) continue;
      const auto known = std::ranges::find_if(
          named, [&](const Named& n) { return *n.symbol == port.dim_names[d]; });
      if (known == named.end()) {
        named.push_back({&port.dim_names[d], &port.name, t.dims[d]});
        continue;
      }
      if (known->size == t.dims[d]) continue;
      if (!out_differ)
        return mismatch(message(" (dimension '", port.dim_names[d], "' is ", known->size,
                                " in input '", *known->input, "')"));
      if (out_differ->empty())
        *out_differ = message("dimension '", port.dim_names[d], "' is ", t.dims[d], " in input '",
                              port.name, "' and ", known->size, " in input '", *known->input, "'");
    }
  }
  return {};
}

Status check_sample(const std::vector<PortInfo>& ports, size_t required, const SymbolTable& symbols,
                    const NamedValues& sample, size_t index) {
  std::vector<ValuePtr> ordered(ports.size());
  for (const auto& [name, value] : sample) {
    const auto port = std::ranges::find(ports, name, &PortInfo::name);
    const auto at = static_cast<size_t>(port - ports.begin());
    if (at >= required)
      return error(Code::kINPUT, "sample ", index, " gives '", name,
                   "', which is no input that must be fed");
    if (value->tensor.device())
      return error(Code::kINPUT, "sample ", index, ": '", name, "' is in the memory of a device");
    ordered[at] = value;
  }
  Status status = check_inputs(ports, required, symbols, ordered);
  return std::move(status.prepend(message("sample ", index)));
}

}  // namespace pfrt
