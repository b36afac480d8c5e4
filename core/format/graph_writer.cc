// SPDX-License-Identifier: Apache-2.0
#include "core/format/graph_writer.h"

#include "core/format/pfm_layout.h"

namespace pfrt {

using flatbuffers::FlatBufferBuilder;
template <typename T>
using Offset = flatbuffers::Offset<T>;
template <typename T>
using Vec = flatbuffers::Offset<flatbuffers::Vector<T>>;

Vec<Offset<pfm::Symbol>> GraphWriter::write_symbols(const SymbolTable& symbols) {
  std::vector<Offset<pfm::Symbol>> out;
  for (uint32_t id = 1; id < symbols.size(); ++id) {
    const SymbolTable::Symbol symbol = symbols.at(id);
    auto name = text(symbol.name);
    const auto& [op, left, right] = symbol.expression;
    auto a = write_dim(left, symbols), b = write_dim(right, symbols);
    out.push_back(pfm::CreateSymbol(builder_, name, static_cast<uint8_t>(op), a, b, symbol.nameless,
                                    symbol.natural));
  }
  return builder_.CreateVector(out);
}

Offset<pfm::Dim> GraphWriter::write_dim(const Dim& dim, const SymbolTable& symbols) {
  if (!compiled_) {
    auto name = text(symbols.given_name(dim));
    return pfm::CreateDim(builder_, dim.known() ? dim.value() : -1, name);
  }
  return pfm::CreateDim(builder_, dim.value(), 0, dim.known() ? pfm::kNumber : dim.symbol());
}

Vec<uint8_t> GraphWriter::bytes(std::string_view s) {
  return builder_.CreateVector(reinterpret_cast<const uint8_t*>(s.data()), s.size());
}

Vec<Offset<flatbuffers::String>> GraphWriter::names(const Graph& graph,
                                                    const std::vector<ValueId>& ids) {
  std::vector<Offset<flatbuffers::String>> out;
  out.reserve(ids.size());
  for (ValueId id : ids) out.push_back(text(id == kNoId ? std::string_view() : graph.at(id).name));
  return builder_.CreateVector(out);
}

template <typename Texts, typename View>
Vec<Offset<pfm::StringBytes>> GraphWriter::write_strings(const Texts& texts, View as_view) {
  std::vector<Offset<pfm::StringBytes>> out;
  out.reserve(texts.size());
  for (const auto& t : texts) out.push_back(pfm::CreateStringBytes(builder_, bytes(as_view(t))));
  return builder_.CreateVector(out);
}

Offset<pfm::Tensor> GraphWriter::write_tensor(const Tensor& t, std::string_view name) {
  auto dims = builder_.CreateVector(t.dims);
  if (t.dtype == PFRT_DTYPE_STRING) {
    auto strings = write_strings(t.strings(), [](const pfrt_string& s) { return view(s); });
    return pfm::CreateTensor(builder_, t.dtype, dims, 0, 0, 0, strings);
  }
  const uint64_t size = t.bytes();
  const Place place = put_(t, name);
  return pfm::CreateTensor(builder_, t.dtype, dims, place.offset, size, place.checksum, 0,
                           place.file, place.deferred);
}

Offset<pfm::Constant> GraphWriter::write_constant(std::string_view name, const Value& value,
                                                  int depth) {
  auto label = text(name);
  const bool whole = depth == 0 && value.kind != PFRT_VALUE_SPARSE;
  auto tensor = write_tensor(value.tensor, whole ? name : std::string_view());
  if (value.kind != PFRT_VALUE_SPARSE)
    return pfm::CreateConstant(builder_, label, value.kind, tensor);
  auto indices = write_tensor(value.indices, {});
  auto dims = builder_.CreateVector(value.dense_dims);
  return pfm::CreateConstant(builder_, label, value.kind, tensor, indices, dims);
}

Result<Offset<pfm::Attribute>> GraphWriter::write_attr(const Attribute& a, int depth) {
  std::vector<Offset<pfm::Constant>> tensors;
  if (a.tensor) tensors.push_back(write_constant("", *a.tensor, depth + 1));
  for (const ValuePtr& v : a.tensors) tensors.push_back(write_constant("", *v, depth + 1));
  std::vector<Offset<pfm::Graph>> graphs;
  if (a.graph) {
    PFRT_ASSIGN(auto g, write_graph(*a.graph, depth + 1));
    graphs.push_back(g);
  }
  for (const auto& body : a.graphs) {
    PFRT_ASSIGN(auto g, write_graph(*body, depth + 1));
    graphs.push_back(g);
  }
  auto name = text(a.name);
  auto s = bytes(a.s);
  auto ints = builder_.CreateVector(a.ints);
  auto floats = builder_.CreateVector(a.floats);
  auto strings = write_strings(a.strings, [](const std::string& t) { return std::string_view(t); });
  auto tensor_list = builder_.CreateVector(tensors);
  auto graph_list = builder_.CreateVector(graphs);
  return pfm::CreateAttribute(builder_, name, a.type, a.i, a.f, s, ints, floats, strings,
                              tensor_list, graph_list);
}

Result<Offset<pfm::Node>> GraphWriter::write_node(const Graph& graph, const Node& node, int depth,
                                                  uint32_t epilogue_of) {
  std::vector<Offset<pfm::Attribute>> attrs;
  for (const Attribute& a : node.attrs) {
    PFRT_ASSIGN(auto one, write_attr(a, depth));
    attrs.push_back(one);
  }
  auto name = text(node.name), op = text(node.op), domain = text(node.domain), doc = text(node.doc);
  auto inputs = names(graph, node.inputs), outputs = names(graph, node.outputs);
  auto attr_list = builder_.CreateVector(attrs);
  return pfm::CreateNode(builder_, name, op, domain, doc, inputs, outputs, attr_list,
                         node.canonical && compiled_, epilogue_of);
}

Offset<pfm::ValueInfo> GraphWriter::write_value(const Graph& graph, const GraphValue& v,
                                                const Type& type) {
  std::vector<Offset<pfm::Dim>> dims;
  for (const Dim& d : type.shape) dims.push_back(write_dim(d, *graph.symbols));
  auto name = text(v.name);
  auto shape = builder_.CreateVector(dims);
  return pfm::CreateValueInfo(builder_, name, type.kind, type.dtype, type.key_dtype, type.has_shape,
                              shape);
}

Result<Offset<pfm::Graph>> GraphWriter::write_graph(const Graph& graph, int depth) {
  if (depth > pfm::kMaxDepth)
    return error(Code::kUNSUPPORTED, "saving as .pfm: bodies are nested more than ", pfm::kMaxDepth,
                 " deep");
  std::vector<Offset<pfm::ValueInfo>> values;
  std::vector<Offset<pfm::Constant>> constants;
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    const GraphValue& v = graph.at(id);
    if (const Type& type = graph.fed_type(id); type.kind != PFRT_VALUE_UNSET)
      values.push_back(write_value(graph, v, type));
    if (v.constant) constants.push_back(write_constant(v.name, *v.constant, depth));
  }
  std::vector<Offset<pfm::Node>> nodes;
  std::vector<uint32_t> place(compiled_ ? graph.node_capacity() : 0);  // from 1; 0 = it is gone
  if (compiled_)
    for (uint32_t n = 0; const NodeId id : graph.node_ids()) place[id] = ++n;
  for (NodeId id : graph.node_ids()) {
    const Node& from = *graph.node(id);
    const uint32_t epilogue_of = from.epilogue_of < place.size() ? place[from.epilogue_of] : 0;
    PFRT_ASSIGN(auto node, write_node(graph, from, depth, epilogue_of));
    nodes.push_back(node);
  }
  std::vector<Offset<pfm::Opset>> opsets;
  opsets.reserve(graph.opsets.size());
  for (const auto& [domain, version] : graph.opsets)
    opsets.push_back(pfm::CreateOpset(builder_, text(domain), version));
  auto name = text(graph.name), doc = text(graph.doc);
  auto inputs = names(graph, graph.inputs), outputs = names(graph, graph.outputs);
  auto value_list = builder_.CreateVector(values);
  auto constant_list = builder_.CreateVector(constants);
  auto node_list = builder_.CreateVector(nodes);
  auto opset_list = builder_.CreateVector(opsets);
  auto metadata = write_entries(graph.metadata);
  return pfm::CreateGraph(builder_, name, doc, inputs, outputs, value_list, constant_list,
                          node_list, opset_list, metadata);
}

}  // namespace pfrt
