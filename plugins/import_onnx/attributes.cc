// SPDX-License-Identifier: Apache-2.0
#include "plugins/import_onnx/attributes.h"

#include "plugins/import_onnx/type_info.h"

namespace pfrt::onnx {

pfrt_attr_type attribute_type(const wire::AttributeProto& attribute) {
  if (attribute.type() != 0) return static_cast<pfrt_attr_type>(attribute.type());
  if (attribute.has_f()) return PFRT_ATTR_FLOAT;
  if (attribute.has_i()) return PFRT_ATTR_INT;
  if (attribute.has_s()) return PFRT_ATTR_STRING;
  if (attribute.has_t()) return PFRT_ATTR_TENSOR;
  if (attribute.has_g()) return PFRT_ATTR_GRAPH;
  if (attribute.has_sparse_tensor()) return PFRT_ATTR_SPARSE;
  if (attribute.has_tp()) return PFRT_ATTR_TYPE;
  if (attribute.floats_size()) return PFRT_ATTR_FLOATS;
  if (attribute.ints_size()) return PFRT_ATTR_INTS;
  if (attribute.strings_size()) return PFRT_ATTR_STRINGS;
  if (attribute.tensors_size()) return PFRT_ATTR_TENSORS;
  if (attribute.graphs_size()) return PFRT_ATTR_GRAPHS;
  return PFRT_ATTR_UNSET;
}

pfrt_attr& AttributeList::add(const std::string& name, pfrt_attr_type type) {
  pfrt_attr& attr = attrs_.emplace_back(sized<pfrt_attr>());
  attr.name = to_c(name);
  attr.type = type;
  return attr;
}

Status AttributeList::add_plain(const std::string& name, pfrt_attr_type type,
                                const wire::AttributeProto& attribute) {
  switch (type) {
    case PFRT_ATTR_FLOAT:
      add(name, type).f = attribute.f();
      return {};
    case PFRT_ATTR_INT:
      add(name, type).i = attribute.i();
      return {};
    case PFRT_ATTR_STRING:
      add(name, type).s = to_c(attribute.s());
      return {};
    case PFRT_ATTR_TYPE: {
      // The type is read only to refuse what the text could not say.
      PFRT_TRY(TypeInfo::read(attribute.tp(), false).take_status());
      add(name, type).s = to_c(texts_.emplace_back(type_text(attribute.tp())));
      return {};
    }
    case PFRT_ATTR_FLOATS: {
      pfrt_attr& attr = add(name, type);
      attr.floats = attribute.floats().data();
      attr.count = static_cast<size_t>(attribute.floats_size());
      return {};
    }
    case PFRT_ATTR_INTS: {
      pfrt_attr& attr = add(name, type);
      attr.ints = attribute.ints().data();
      attr.count = static_cast<size_t>(attribute.ints_size());
      return {};
    }
    case PFRT_ATTR_STRINGS: {
      auto& list = string_lists_.emplace_back();
      for (const auto& text : attribute.strings()) list.push_back(to_c(text));
      pfrt_attr& attr = add(name, type);
      attr.strings = list.data();
      attr.count = list.size();
      return {};
    }
    default:
      return error(Code::kUNSUPPORTED, "attribute type ", type, " is not supported");
  }
}

void AttributeList::add_values(const std::string& name, pfrt_attr_type type,
                               std::vector<pfrt_value*> values) {
  pfrt_attr& attr = add(name, type);
  const auto& list = value_lists_.emplace_back(std::move(values));
  if (type == PFRT_ATTR_TENSORS) {
    attr.tensors = list.data();
    attr.count = list.size();
  } else {
    attr.tensor = list.front();
  }
}

void AttributeList::add_graphs(const std::string& name, pfrt_attr_type type,
                               std::vector<pfrt_graph*> graphs) {
  pfrt_attr& attr = add(name, type);
  const auto& list = graph_lists_.emplace_back(std::move(graphs));
  if (type == PFRT_ATTR_GRAPHS) {
    attr.graphs = list.data();
    attr.count = list.size();
  } else {
    attr.graph = list.front();
  }
}

pfrt_value* AttributeList::keep(ValueRef value) {
  return values_.emplace_back(std::move(value)).get();
}
pfrt_graph* AttributeList::keep(GraphRef graph) {
  return graphs_.emplace_back(std::move(graph)).get();
}

}  // namespace pfrt::onnx
