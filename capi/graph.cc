// SPDX-License-Identifier: Apache-2.0
#include "capi/graph.h"

#include "capi/handle/env.h"
#include "capi/handle/plugin_scope.h"
#include "capi/handle/slots.h"
#include "capi/handle/tensor.h"
#include "capi/handle/value.h"
#include "core/ir/verify.h"

pfrt_graph::~pfrt_graph() {
  for (auto& [part, handle] : values) pfrt::capi::release(handle);
  for (auto& [part, handle] : bodies) pfrt::capi::release(handle);
}

void pfrt_graph::edited() {
  ++graph->revision;
  refresh();
}

void pfrt_graph::refresh() {
  if (revision == graph->revision) return;
  revision = graph->revision;
  nodes.clear();
  infos.clear();
  order.clear();
  users.clear();
  listed = false;
}

std::shared_ptr<pfrt::Graph> pfrt_graph::end_load() {
  if (loaded) loaded->store(true);
  auto out = std::exchange(graph, std::make_shared<pfrt::Graph>());
  graph->revision = out->revision + 1;
  refresh();
  metadata.clear();
  return out;
}

pfrt::Status pfrt_graph::open() const {
  if (!loaded || !loaded->load()) return {};
  return pfrt::error(pfrt::Code::kINVALID_ARGUMENT,
                     "using a graph that a load has built: the load is over, and the graph is its "
                     "model's; take a copy of the model's graph (model->graph) and edit that");
}

void pfrt_graph::drop_value(const pfrt::Value* value) {
  const auto found = values.find(value);
  if (found == values.end()) return;
  pfrt::capi::release(found->second);
  values.erase(found);
}

namespace pfrt::capi {
namespace {

void list(pfrt_graph* g) {
  if (g->listed) return;
  g->ids = g->graph->node_ids();
  g->initializers = g->graph->initializers();
  g->listed = true;
}

pfrt_graph* body_handle(pfrt_graph* g, const std::shared_ptr<Graph>& body) {
  pfrt_graph*& handle = g->bodies[body.get()];
  if (!handle) handle = new pfrt_graph(body, g->loaded);
  return handle;
}

pfrt_status* create(pfrt_string name, pfrt_graph** out) {
  return guard([&]() -> Status {
    if (!out) return null_argument("out_graph");
    *out = nullptr;
    *out = new pfrt_graph(std::make_shared<Graph>(std::string(view(name))));
    return {};
  });
}

pfrt_status* create_subgraph(pfrt_graph* outer, pfrt_string name, pfrt_graph** out) {
  return guard([&]() -> Status {
    if (!outer || !out) return null_argument(outer ? "out_graph" : "outer");
    *out = nullptr;
    PFRT_TRY(outer->open());
    if (outer->graph->depth >= kMaxBodyDepth)
      return error(Code::kINVALID_ARGUMENT, "making body '", name, "': bodies nest at most ",
                   kMaxBodyDepth, " deep");
    *out =
        new pfrt_graph(Graph::subgraph_of(*outer->graph, std::string(view(name))), outer->loaded);
    return {};
  });
}

pfrt_status* set_opset(pfrt_graph* graph, pfrt_string domain, int64_t version) {
  return edit(graph, [&](Graph& g) -> Status {
    if (version <= 0)
      return error(Code::kINVALID_ARGUMENT, "setting the opset of '", domain, "' to ", version,
                   ": it must be positive");
    g.opsets[view(domain) == "ai.onnx" ? std::string() : std::string(view(domain))] = version;
    return {};
  });
}

pfrt_status* set_metadata(pfrt_graph* graph, pfrt_string key, pfrt_string value) {
  return edit(graph, [&](Graph& g) -> Status {
    auto& places = graph->metadata;
    const auto known = places.find(std::string(view(key)));
    const bool moved = known != places.end() && (known->second >= g.metadata.size() ||
                                                 g.metadata[known->second].first != view(key));
    if (moved || places.size() > g.metadata.size()) places.clear();  // edited elsewhere
    for (size_t i = places.size(); i < g.metadata.size(); ++i)
      places.try_emplace(g.metadata[i].first, i);
    const auto [at, fresh] = places.try_emplace(std::string(view(key)), g.metadata.size());
    if (fresh)
      g.metadata.emplace_back(view(key), view(value));
    else
      g.metadata[at->second].second = view(value);
    return {};
  });
}

}  // namespace

// Getters hand out views of storage in the handle; the graph itself is unchanged by them.
pfrt_graph* mutable_handle(const pfrt_graph* graph) {
  auto* handle = const_cast<pfrt_graph*>(graph);
  handle->refresh();
  return handle;
}

pfrt_value* value_handle(pfrt_graph* g, const ValuePtr& value) {
  pfrt_value*& handle = g->values[value.get()];
  if (!handle) handle = new pfrt_value(value);
  return handle;
}

Result<ValueId> described(Graph& g, const pfrt_value_info* info, const char* doing) {
  if (!info) return null_argument("info");
  PFRT_ASSIGN(const pfrt_value_info i, read(info));
  if (i.name.size == 0) return error(Code::kINVALID_ARGUMENT, doing, ": the value has no name");
  PFRT_ASSIGN(Type type, type_from(i, *g.symbols));
  const ValueId id = g.value(view(i.name));
  GraphValue& value = g.at(id);
  if (type.kind != PFRT_VALUE_UNSET)
    (value.constant ? value.declared : value.type) = std::move(type);
  return id;
}

namespace {

pfrt_status* add_input(pfrt_graph* graph, const pfrt_value_info* info) {
  return edit(graph, [&](Graph& g) -> Status {
    PFRT_ASSIGN(const ValueId id, described(g, info, "adding a graph input"));
    if (g.at(id).producer != kNoId)
      return error(Code::kVALIDATION, "adding graph input '", g.at(id).name,
                   "': a node produces it already");
    g.inputs.push_back(id);
    return {};
  });
}

pfrt_status* add_output(pfrt_graph* graph, const pfrt_value_info* info) {
  return edit(graph, [&](Graph& g) -> Status {
    // For an input that is an output too, the description as an input counts.
    const ValueId known = g.find(view(abi::known(info).name));
    const bool is_input = known != kNoId && g.is_input(known);
    const GraphValue said = is_input ? g.at(known) : GraphValue();
    PFRT_ASSIGN(const ValueId id, described(g, info, "adding a graph output"));
    if (is_input) g.at(id) = said;
    g.outputs.push_back(id);
    return {};
  });
}

pfrt_status* set_value_info(pfrt_graph* graph, const pfrt_value_info* info) {
  return edit(graph, [&](Graph& g) -> Status {
    PFRT_ASSIGN([[maybe_unused]] const ValueId id, described(g, info, "describing a value"));
    return {};
  });
}

Status set_initializer(pfrt_graph* graph, pfrt_string name, ValuePtr value) {
  Graph& g = *graph->graph;
  if (name.size == 0)
    return error(Code::kINVALID_ARGUMENT, "adding an initializer: it has no name");
  const ValueId id = g.value(view(name));
  if (g.at(id).producer != kNoId)
    return error(Code::kVALIDATION, "adding initializer '", name, "': a node produces it already");
  if (const ValuePtr& old = g.at(id).constant; old && old != value) graph->drop_value(old.get());
  g.set_constant(id, std::move(value));
  return {};
}

pfrt_status* add_initializer(pfrt_graph* graph, pfrt_string name, const pfrt_tensor* tensor,
                             uint32_t borrow, pfrt_release_fn release_fn, void* user) {
  return edit(graph, [&](Graph&) -> Status {
    auto keep = release_later(borrow ? release_fn : nullptr, user, tensor ? tensor->data : nullptr);
    if (!tensor) return null_argument("tensor");
    PFRT_ASSIGN(const pfrt_tensor given, read(tensor));
    auto made = tensor_from(given, borrow != 0, [keep] {});
    if (!made.ok()) return made.take_status().prepend(message("adding initializer '", name, "'"));
    return set_initializer(graph, name, Value::of(made.take()));
  });
}

pfrt_status* add_initializer_value(pfrt_graph* graph, pfrt_string name, pfrt_value* value) {
  return edit(graph, [&](Graph&) -> Status {
    if (!value) return null_argument("value");
    if (value->value->kind != PFRT_VALUE_TENSOR && value->value->kind != PFRT_VALUE_SPARSE)
      return error(Code::kINVALID_ARGUMENT, "adding initializer '", name,
                   "': only tensors and sparse tensors can be constants");
    PFRT_TRY(need_host(*value->value, "adding an initializer"));
    return set_initializer(graph, name, value->value);
  });
}

// A body fits where it is deeper than the graph; so no graph can contain itself.
Status check_body(const pfrt_attr& from, const Graph& outer, const Graph& body) {
  if (body.symbols == outer.symbols && body.depth > outer.depth) return {};
  return error(Code::kINVALID_ARGUMENT, "setting attribute '", from.name, "': body '", body.name,
               "' was not made with create_subgraph of this graph or one around it");
}

Result<Attribute> attribute_from(const pfrt_attr& from, const Graph& outer) {
  Attribute a;
  a.name = view(from.name);
  a.type = from.type;
  const auto missing = [&](const char* what) {
    return error(Code::kINVALID_ARGUMENT, "setting attribute '", from.name, "': it has no ", what);
  };
  switch (from.type) {
    case PFRT_ATTR_FLOAT:
      a.f = from.f;
      break;
    case PFRT_ATTR_INT:
      a.i = from.i;
      break;
    case PFRT_ATTR_STRING:
    case PFRT_ATTR_TYPE:
      a.s = view(from.s);
      break;
    case PFRT_ATTR_FLOATS:
      if (from.count && !from.floats) return missing("floats");
      a.floats.assign(from.floats, from.floats + from.count);
      break;
    case PFRT_ATTR_INTS:
      if (from.count && !from.ints) return missing("ints");
      a.ints.assign(from.ints, from.ints + from.count);
      break;
    case PFRT_ATTR_STRINGS:
      if (from.count && !from.strings) return missing("strings");
      for (size_t i = 0; i < from.count; ++i) a.strings.emplace_back(view(from.strings[i]));
      break;
    case PFRT_ATTR_TENSOR:
    case PFRT_ATTR_SPARSE:
      if (!from.tensor) return missing("tensor");
      PFRT_TRY(need_host(*from.tensor->value, "setting an attribute"));
      a.tensor = from.tensor->value;
      break;
    case PFRT_ATTR_TENSORS:
      for (size_t i = 0; i < from.count; ++i) {
        if (!from.tensors || !from.tensors[i]) return missing("tensors");
        PFRT_TRY(need_host(*from.tensors[i]->value, "setting an attribute"));
        a.tensors.push_back(from.tensors[i]->value);
      }
      break;
    case PFRT_ATTR_GRAPH:
      if (!from.graph) return missing("graph");
      PFRT_TRY(check_body(from, outer, *from.graph->graph));
      a.graph = from.graph->graph;
      break;
    case PFRT_ATTR_GRAPHS:
      for (size_t i = 0; i < from.count; ++i) {
        if (!from.graphs || !from.graphs[i]) return missing("graphs");
        PFRT_TRY(check_body(from, outer, *from.graphs[i]->graph));
        a.graphs.push_back(from.graphs[i]->graph);
      }
      break;
    case PFRT_ATTR_UNSET:
      return missing("type");
    default:
      return abi::unknown_number(message("setting attribute '", from.name, "'"), "attribute type",
                                 from.type);
  }
  return a;
}

pfrt_status* add_node(pfrt_graph* graph, const pfrt_node* node, uint32_t* out_id) {
  return edit(graph, [&](Graph& g) -> Status {
    if (!node) return null_argument("node");
    PFRT_ASSIGN(const pfrt_node from, read(node));
    if (out_id) *out_id = 0;
    if ((from.input_count && !from.inputs) || (from.output_count && !from.outputs) ||
        (from.attr_count && !from.attrs))
      return error(Code::kINVALID_ARGUMENT, "adding node '", from.name,
                   "': a list is NULL but its count is not 0");
    Node n;
    n.name = view(from.name);
    n.op = view(from.op);
    n.domain = view(from.domain) == "ai.onnx" ? std::string() : std::string(view(from.domain));
    n.doc = view(from.doc);
    PFRT_TRY(abi::check_array(from.attrs, from.attr_count));
    constexpr size_t kFew = 16;
    std::unordered_map<std::string, size_t> places;  // index by name, where there are many
    for (size_t i = 0; i < from.attr_count; ++i) {
      PFRT_ASSIGN(Attribute a, attribute_from(abi::known(&abi::element(from.attrs, i)), g));
      if (from.attr_count <= kFew) {
        n.set_attr(std::move(a));
        continue;
      }
      const auto [at, fresh] = places.try_emplace(a.name, n.attrs.size());
      if (fresh)
        n.attrs.push_back(std::move(a));
      else
        n.attrs[at->second] = std::move(a);
    }
    for (size_t i = 0; i < from.input_count; ++i) n.inputs.push_back(g.value(view(from.inputs[i])));
    for (size_t i = 0; i < from.output_count; ++i)
      n.outputs.push_back(g.value(view(from.outputs[i])));
    PFRT_ASSIGN(const NodeId id, g.add_node(std::move(n)));
    if (out_id) *out_id = id;
    return {};
  });
}

}  // namespace

Result<Node*> live_node(Graph& g, uint32_t id) {
  Node* node = g.node(id);
  if (!node)
    return error(Code::kNOT_FOUND, "looking for node ", id,
                 ": the graph has no such node (any more)");
  return node;
}

namespace {

pfrt_status* set_attr(pfrt_graph* graph, uint32_t id, const pfrt_attr* attr) {
  return edit(graph, [&](Graph& g) -> Status {
    if (!attr) return null_argument("attr");
    PFRT_ASSIGN(Node * node, live_node(g, id));
    PFRT_ASSIGN(const pfrt_attr given, read(attr));
    PFRT_ASSIGN(Attribute a, attribute_from(given, g));
    node->set_attr(std::move(a));
    return {};
  });
}

pfrt_status* remove_node(pfrt_graph* graph, uint32_t id) {
  return edit(graph, [&](Graph& g) -> Status {
    PFRT_ASSIGN([[maybe_unused]] Node * node, live_node(g, id));
    g.remove_node(id);
    return {};
  });
}

pfrt_string name(const pfrt_graph* graph) { return graph ? to_c(graph->graph->name) : to_c(""); }
size_t opset_count(const pfrt_graph* graph) { return graph ? graph->graph->opsets.size() : 0; }

Status out_of_range(const char* what, size_t index, size_t count) {
  return error(Code::kINVALID_ARGUMENT, "reading ", what, " ", index, " of ", count);
}

pfrt_status* opset_at(const pfrt_graph* graph, size_t index, pfrt_string* out_domain,
                      int64_t* out_version) {
  return guard([&]() -> Status {
    if (!graph || !out_domain || !out_version)
      return null_argument("graph, out_domain or out_version");
    const auto& opsets = graph->graph->opsets;
    if (index >= opsets.size()) return out_of_range("opset", index, opsets.size());
    const auto it = std::next(opsets.begin(), static_cast<std::ptrdiff_t>(index));
    *out_domain = to_c(it->first);
    *out_version = it->second;
    return {};
  });
}

size_t metadata_count(const pfrt_graph* graph) { return graph ? graph->graph->metadata.size() : 0; }

pfrt_status* metadata_at(const pfrt_graph* graph, size_t index, pfrt_key_value* out) {
  return guard([&]() -> Status {
    if (!graph || !out) return null_argument(graph ? "out_entry" : "graph");
    const auto& entries = graph->graph->metadata;
    if (index >= entries.size()) return out_of_range("metadata entry", index, entries.size());
    *out = {to_c(entries[index].first), to_c(entries[index].second)};
    return {};
  });
}

[[nodiscard]] Status give_info(const pfrt_graph* graph, ValueId id, pfrt_value_info* out) {
  pfrt_graph* g = mutable_handle(graph);
  std::unique_ptr<InfoStorage>& storage = g->infos[id];
  if (!storage) storage = std::make_unique<InfoStorage>();
  return write(out, make_value_info(port_info(*g->graph, id), *storage));
}

size_t input_count(const pfrt_graph* graph) { return graph ? graph->graph->inputs.size() : 0; }
size_t output_count(const pfrt_graph* graph) { return graph ? graph->graph->outputs.size() : 0; }

pfrt_status* input_at(const pfrt_graph* graph, size_t index, pfrt_value_info* out) {
  return guard([&]() -> Status {
    if (!graph || !out) return null_argument(graph ? "out_info" : "graph");
    const auto& ids = graph->graph->inputs;
    return index < ids.size() ? give_info(graph, ids[index], out)
                              : out_of_range("input", index, ids.size());
  });
}

pfrt_status* output_at(const pfrt_graph* graph, size_t index, pfrt_value_info* out) {
  return guard([&]() -> Status {
    if (!graph || !out) return null_argument(graph ? "out_info" : "graph");
    const auto& ids = graph->graph->outputs;
    return index < ids.size() ? give_info(graph, ids[index], out)
                              : out_of_range("output", index, ids.size());
  });
}

size_t initializer_count(const pfrt_graph* graph) {
  if (!graph) return 0;
  list(mutable_handle(graph));
  return graph->initializers.size();
}

pfrt_status* initializer_at(const pfrt_graph* graph, size_t index, pfrt_string* out_name,
                            pfrt_value** out_value) {
  return guard([&]() -> Status {
    if (!graph || !out_name || !out_value) return null_argument("graph, out_name or out_value");
    *out_value = nullptr;
    pfrt_graph* g = mutable_handle(graph);
    list(g);
    if (index >= g->initializers.size())
      return out_of_range("initializer", index, g->initializers.size());
    const GraphValue& v = g->graph->at(g->initializers[index]);
    *out_name = to_c(v.name);
    *out_value = value_handle(g, v.constant);
    return {};
  });
}

size_t node_count(const pfrt_graph* graph) {
  if (!graph) return 0;
  list(mutable_handle(graph));
  return graph->ids.size();
}

pfrt_attr attr_view(pfrt_graph* g, const Attribute& from, pfrt_graph::NodeStorage& storage) {
  pfrt_attr a{};
  a.struct_size = sizeof a;
  a.type = from.type;
  a.name = to_c(from.name);
  a.i = from.i;
  a.f = from.f;
  a.s = to_c(from.s);
  a.ints = from.ints.data();
  a.floats = from.floats.data();
  switch (from.type) {
    case PFRT_ATTR_INTS:
      a.count = from.ints.size();
      break;
    case PFRT_ATTR_FLOATS:
      a.count = from.floats.size();
      break;
    case PFRT_ATTR_STRINGS: {
      std::vector<pfrt_string> views;
      views.reserve(from.strings.size());
      for (const std::string& s : from.strings) views.push_back(to_c(s));
      storage.strings.push_back(std::move(views));
      a.strings = storage.strings.back().data();
      a.count = from.strings.size();
      break;
    }
    case PFRT_ATTR_TENSOR:
    case PFRT_ATTR_SPARSE:
      if (from.tensor) a.tensor = value_handle(g, from.tensor);
      break;
    case PFRT_ATTR_TENSORS: {
      std::vector<pfrt_value*> handles;
      handles.reserve(from.tensors.size());
      for (const ValuePtr& v : from.tensors) handles.push_back(value_handle(g, v));
      storage.values.push_back(std::move(handles));
      a.tensors = storage.values.back().data();
      a.count = from.tensors.size();
      break;
    }
    case PFRT_ATTR_GRAPH:
      if (from.graph) a.graph = body_handle(g, from.graph);
      break;
    case PFRT_ATTR_GRAPHS: {
      std::vector<pfrt_graph*> handles;
      handles.reserve(from.graphs.size());
      for (const auto& body : from.graphs) handles.push_back(body_handle(g, body));
      storage.graphs.push_back(std::move(handles));
      a.graphs = storage.graphs.back().data();
      a.count = from.graphs.size();
      break;
    }
    default:
      break;
  }
  return a;
}

pfrt_status* node_at(const pfrt_graph* graph, size_t index, pfrt_node* out) {
  return guard([&]() -> Status {
    if (!graph || !out) return null_argument(graph ? "out_node" : "graph");
    pfrt_graph* g = mutable_handle(graph);
    list(g);
    if (index >= g->ids.size()) return out_of_range("node", index, g->ids.size());
    return give_node(g, *g->graph->node(g->ids[index]), out);
  });
}

}  // namespace

Status give_node(pfrt_graph* g, const Node& from, pfrt_node* out) {
  std::unique_ptr<pfrt_graph::NodeStorage>& storage = g->nodes[from.id];
  if (!storage) {
    auto made = std::make_unique<pfrt_graph::NodeStorage>();
    const auto value_name = [&](ValueId id) {
      return id == kNoId ? to_c("") : to_c(g->graph->at(id).name);
    };
    for (ValueId v : from.inputs) made->inputs.push_back(value_name(v));
    for (ValueId v : from.outputs) made->outputs.push_back(value_name(v));
    for (const Attribute& a : from.attrs) made->attrs.push_back(attr_view(g, a, *made));
    storage = std::move(made);
  }
  pfrt_node node{};
  node.id = from.id;
  node.name = to_c(from.name);
  node.op = to_c(from.op);
  node.domain = to_c(from.domain);
  node.doc = to_c(from.doc);
  node.inputs = storage->inputs.data();
  node.input_count = storage->inputs.size();
  node.outputs = storage->outputs.data();
  node.output_count = storage->outputs.size();
  node.attrs = storage->attrs.data();
  node.attr_count = storage->attrs.size();
  return write(out, node);
}

namespace {

pfrt_status* value_info(const pfrt_graph* graph, pfrt_string value_name, pfrt_value_info* out) {
  return guard([&]() -> Status {
    if (!graph || !out) return null_argument(graph ? "out_info" : "graph");
    const ValueId id = graph->graph->find(view(value_name));
    if (id == kNoId)
      return error(Code::kNOT_FOUND, "looking for value '", value_name,
                   "': the graph has none of that name");
    return give_info(graph, id, out);
  });
}

pfrt_status* topological_order(pfrt_graph* graph, const uint32_t** out_ids, size_t* out_count) {
  return guard([&]() -> Status {
    if (!graph || !out_ids || !out_count) return null_argument("graph, out_ids or out_count");
    *out_ids = nullptr;
    *out_count = 0;
    PFRT_TRY(graph->open());
    graph->refresh();
    PFRT_TRY(graph->graph->bind_captures());
    PFRT_ASSIGN(graph->order, graph->graph->topological_order());
    *out_ids = graph->order.data();
    *out_count = graph->order.size();
    return {};
  });
}

pfrt_status* validate(pfrt_graph* graph) {
  return guard([&]() -> Status {
    if (!graph) return null_argument("graph");
    PFRT_TRY(graph->open());
    PFRT_TRY(graph->graph->bind_captures());
    return verify(*graph->graph);
  });
}

pfrt_status* infer_shapes(pfrt_graph* graph) {
  return edit(graph, [](Graph& g) { return infer_types(g); });
}

}  // namespace

const pfrt_graph_api kGraphApi = {
    sizeof(pfrt_graph_api),
    PFRT_ABI_VERSION,
    create,
    retain<pfrt_graph>,
    last_call<release<pfrt_graph>, pfrt_graph>,
    create_subgraph,
    set_opset,
    set_metadata,
    add_input,
    add_output,
    set_value_info,
    add_initializer,
    add_initializer_value,
    add_node,
    set_attr,
    remove_node,
    name,
    opset_count,
    opset_at,
    metadata_count,
    metadata_at,
    input_count,
    input_at,
    output_count,
    output_at,
    initializer_count,
    initializer_at,
    node_count,
    node_at,
    value_info,
    topological_order,
    validate,
    infer_shapes,
    clone,
    set_name,
    remove_opset,
    remove_metadata,
    node_by_id,
    find_node,
    next_node,
    producer,
    consumers,
    rename_node,
    set_node_inputs,
    set_node_outputs,
    remove_attr,
    replace_uses_of,
    rename_value_of,
    replace_input,
    remove_input,
    replace_output,
    remove_output,
    initializer,
    remove_initializer,
    initializer_for_write,
    validate_everything,
    extract_part,
};

}  // namespace pfrt::capi
