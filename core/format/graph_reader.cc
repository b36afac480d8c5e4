// SPDX-License-Identifier: Apache-2.0
#include "core/format/graph_reader.h"

#include <algorithm>
#include <cstring>

#include "core/base/rank.h"

namespace pfrt {
namespace {

Status check_rank(size_t rank, const std::string& name) {
  if (rank <= kMaxRank) return {};
  return error(Code::kINVALID_MODEL, "value '", name, "' has rank ", rank, "; at most ", kMaxRank,
               " is possible");
}

}  // namespace

Status GraphReader::check_budget() const {
  if (budget_ > 0) return {};
  return error(Code::kINVALID_MODEL,
               "the graph's bytes name the same parts over and over: read "
               "out they would have more than ",
               kSharing, " times their size");
}

std::string GraphReader::text(const flatbuffers::String* s) {
  charge(s && budget_ > 0 ? s->size() : 0);
  return s && budget_ > 0 ? s->str() : std::string();
}

std::string GraphReader::text(const flatbuffers::Vector<uint8_t>* s) {
  charge(s ? s->size() : 0);
  if (!s || budget_ == 0) return {};
  return std::string(reinterpret_cast<const char*>(s->data()), s->size());
}

std::vector<std::pair<std::string, std::string>> GraphReader::entries(
    const flatbuffers::Vector<flatbuffers::Offset<pfm::Entry>>* list) {
  std::vector<std::pair<std::string, std::string>> out;
  for_each(list, [&](const pfm::Entry* e) { out.emplace_back(text(e->key()), text(e->value())); });
  return out;
}

Result<Tensor> GraphReader::read_tensor(const pfm::Tensor* from, const std::string& name) {
  if (!from) return error(Code::kINVALID_MODEL, "constant '", name, "' has no tensor");
  Tensor t;
  t.dtype = from->dtype();
  t.dims = numbers(from->dims());
  PFRT_TRY(check_rank(t.dims.size(), name));
  const int64_t count = t.count();
  const uint64_t expected = t.bytes();
  if (!dtype_known(t.dtype) || count < 0 || expected == UINT64_MAX)
    return error(Code::kINVALID_MODEL, "constant '", name,
                 "' has an unknown type or impossible dimensions");
  if (t.dtype == PFRT_DTYPE_STRING) {
    const uint32_t have = from->strings() ? from->strings()->size() : 0;
    if (static_cast<uint64_t>(count) != have)
      return error(Code::kINVALID_MODEL, "constant '", name, "' should have ", count,
                   " strings, has ", have);
    PFRT_ASSIGN(t.buffer, Buffer::strings(have));
    for (uint32_t i = 0; i < have; ++i)
      PFRT_TRY(t.buffer->set_string(i, text(from->strings()->Get(i)->data())));
    return t;
  }
  if (from->bytes() != expected)
    return error(Code::kINVALID_MODEL, "constant '", name, "' should have ", expected,
                 " bytes, its section has ", from->bytes());
  PFRT_TRY(section_(*from, expected, name, t));
  return t;
}

Result<ValuePtr> GraphReader::read_constant(const pfm::Constant& from, const std::string& name) {
  PFRT_ASSIGN(Tensor tensor, read_tensor(from.tensor(), name));
  if (from.kind() == PFRT_VALUE_TENSOR) return Value::of(std::move(tensor));
  if (from.kind() != PFRT_VALUE_SPARSE)
    return error(Code::kINVALID_MODEL, "constant '", name,
                 "' is neither a tensor nor a sparse tensor");
  auto value = std::make_shared<Value>();
  value->kind = PFRT_VALUE_SPARSE;
  value->tensor = std::move(tensor);
  PFRT_ASSIGN(value->indices, read_tensor(from.indices(), name));
  value->dense_dims = numbers(from.dense_dims());
  PFRT_TRY(check_rank(value->dense_dims.size(), name));
  return ValuePtr(std::move(value));
}

Result<Attribute> GraphReader::read_attr(const pfm::Attribute& from, Graph& graph, int depth) {
  Attribute a;
  a.name = text(from.name());
  a.type = from.type();
  a.i = from.i();
  a.f = from.f();
  a.s = text(from.s());
  a.ints = numbers(from.ints());
  a.floats = numbers(from.floats());
  for_each(from.strings(),
           [&](const pfm::StringBytes* s) { a.strings.push_back(text(s->data())); });
  PFRT_TRY(try_each(from.tensors(), [&](const pfm::Constant* c) -> Status {
    PFRT_ASSIGN(ValuePtr v, read_constant(*c, a.name));
    a.tensors.push_back(std::move(v));
    return {};
  }));
  PFRT_TRY(try_each(from.graphs(), [&](const pfm::Graph* g) -> Status {
    a.graphs.push_back(Graph::subgraph_of(graph, text(g->name())));
    return read_graph(*g, *a.graphs.back(), depth + 1);
  }));
  const bool one_tensor = a.type == PFRT_ATTR_TENSOR || a.type == PFRT_ATTR_SPARSE;
  if ((one_tensor && a.tensors.size() != 1) || (a.type == PFRT_ATTR_GRAPH && a.graphs.size() != 1))
    return error(Code::kINVALID_MODEL, "attribute '", a.name,
                 "' does not have the one value its type needs");
  if (one_tensor) {
    a.tensor = a.tensors[0];
    a.tensors.clear();
  }
  if (a.type == PFRT_ATTR_GRAPH) {
    a.graph = a.graphs[0];
    a.graphs.clear();
  }
  return a;
}

Dim GraphReader::read_dim(const pfm::Dim& from, SymbolTable& symbols) {
  if (!compiled_) return from.value() >= 0 ? Dim(from.value()) : symbols.symbol(text(from.name()));
  if (from.symbol() == pfm::kNumber) return from.value();
  return from.symbol() < symbols.size() ? Dim::of_symbol(from.symbol()) : Dim();
}

Status GraphReader::read_symbols(const flatbuffers::Vector<flatbuffers::Offset<pfm::Symbol>>* from,
                                 SymbolTable& symbols) {
  return try_each(from, [&](const pfm::Symbol* s) -> Status {
    SymbolTable::Symbol symbol;
    symbol.name = text(s->name());
    if (s->op() > static_cast<uint8_t>(DimOp::kBroadcast) || (s->op() != 0 && !(s->a() && s->b())))
      return error(Code::kINVALID_MODEL, "symbol '", symbol.name, "' has no known meaning");
    symbol.expression.op = static_cast<DimOp>(s->op());
    if (s->op() != 0)
      symbol.expression = {symbol.expression.op, read_dim(*s->a(), symbols),
                           read_dim(*s->b(), symbols)};
    symbol.nameless = s->nameless();
    symbol.natural = s->natural();
    if (!symbols.append(std::move(symbol)))
      return error(Code::kINVALID_MODEL, "two symbols have one name");
    return {};
  });
}

Status GraphReader::read_graph(const pfm::Graph& from, Graph& graph, int depth) {
  if (depth > pfm::kMaxDepth)
    return error(Code::kINVALID_MODEL, "bodies are nested more than ", pfm::kMaxDepth, " deep");
  graph.name = text(from.name());
  graph.doc = text(from.doc());
  if (depth == 0)
    for_each(from.opsets(),
             [&](const pfm::Opset* o) { graph.opsets[text(o->domain())] = o->version(); });
  for_each(from.metadata(), [&](const pfm::Entry* e) {
    graph.metadata.emplace_back(text(e->key()), text(e->value()));
  });
  const auto read_value = [&](const pfm::ValueInfo* v) -> Status {
    const ValueId id = graph.value(text(v->name()));
    if (id == kNoId) return {};
    if (v->shape()) PFRT_TRY(check_rank(v->shape()->size(), graph.at(id).name));
    Type& type = graph.at(id).type;
    type.kind = v->kind();
    type.dtype = v->dtype();
    type.key_dtype = v->key_dtype();
    type.has_shape = v->has_shape();
    for_each(v->shape(),
             [&](const pfm::Dim* d) { type.shape.push_back(read_dim(*d, *graph.symbols)); });
    return {};
  };
  PFRT_TRY(try_each(from.values(), read_value));
  PFRT_TRY(try_each(from.constants(), [&](const pfm::Constant* c) -> Status {
    const std::string name = text(c->name());
    const ValueId id = graph.value(name);
    if (id == kNoId) return error(Code::kINVALID_MODEL, "a constant has no name");
    PFRT_ASSIGN(ValuePtr value, read_constant(*c, name));
    graph.set_constant(id, std::move(value));
    return {};
  }));
  const auto list_values = [&](const auto* list, std::vector<ValueId>& ids) {
    for_each(list, [&](const flatbuffers::String* s) { ids.push_back(graph.value(text(s))); });
  };
  list_values(from.inputs(), graph.inputs);
  list_values(from.outputs(), graph.outputs);
  for (const auto* ids : {&graph.inputs, &graph.outputs})
    for (ValueId id : *ids)
      if (id == kNoId) return error(Code::kINVALID_MODEL, "a graph input or output has no name");
  return try_each(from.nodes(), [&](const pfm::Node* n) -> Status {
    Node node;
    node.name = text(n->name());
    node.op = text(n->op());
    node.domain = text(n->domain());
    node.doc = text(n->doc());
    list_values(n->inputs(), node.inputs);
    list_values(n->outputs(), node.outputs);
    PFRT_TRY(try_each(n->attrs(), [&](const pfm::Attribute* a) -> Status {
      PFRT_ASSIGN(Attribute attr, read_attr(*a, graph, depth));
      node.attrs.push_back(std::move(attr));
      return {};
    }));
    node.canonical = compiled_ && n->canonical();
    if (compiled_ && n->epilogue_of() > 0 && n->epilogue_of() <= from.nodes()->size())
      node.epilogue_of = n->epilogue_of() - 1;  // nodes of a new graph are numbered in order
    PFRT_ASSIGN([[maybe_unused]] const NodeId id, graph.add_node(std::move(node)));
    return {};
  });
}

}  // namespace pfrt
