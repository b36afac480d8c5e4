// SPDX-License-Identifier: Apache-2.0
#include "capi/graph.h"
#include "capi/handle/env.h"
#include "capi/handle/tensor.h"
#include "capi/handle/value.h"
#include "core/base/os/mapping_guard.h"
#include "core/ir/edit.h"
#include "core/ir/extract.h"
#include "core/model/model.h"

namespace pfrt::capi {
namespace {

Result<ValueId> named_value(const Graph& g, pfrt_string name, const char* doing) {
  const ValueId id = g.find(view(name));
  if (id == kNoId)
    return error(Code::kNOT_FOUND, doing, " '", name, "': the graph has no value of that name");
  return id;
}

Result<ValueId> named_initializer(const Graph& g, pfrt_string name, const char* doing) {
  const ValueId id = g.find(view(name));
  if (id == kNoId || !g.at(id).constant)
    return error(Code::kNOT_FOUND, doing, " '", name,
                 "': the graph has no initializer of that name");
  return id;
}

Status check_names(const pfrt_string* names, size_t count) {
  return count && !names ? null_argument("names") : Status();
}

std::vector<ValueId> values_of(Graph& g, const pfrt_string* names, size_t count) {
  std::vector<ValueId> ids;
  for (size_t i = 0; i < count; ++i) ids.push_back(g.value(view(names[i])));
  return ids;
}

Status check_index(const char* doing, size_t index, size_t count) {
  if (index < count) return {};
  return error(Code::kINVALID_ARGUMENT, doing, " ", index, " of ", count);
}

// Describes a value that takes a place in a list; its type becomes that of |info|.
Result<ValueId> described_anew(Graph& g, const pfrt_value_info* info, const char* doing) {
  PFRT_ASSIGN(const ValueId id, described(g, info, doing));
  GraphValue& value = g.at(id);
  if (abi::known(info).kind == PFRT_VALUE_UNSET)
    (value.constant ? value.declared : value.type) = Type();
  return id;
}

}  // namespace

pfrt_status* clone(const pfrt_graph* graph, pfrt_graph** out) {
  return guard([&]() -> Status {
    if (!graph || !out) return null_argument(graph ? "out_graph" : "graph");
    *out = nullptr;
    PFRT_TRY(graph->open());
    *out = new pfrt_graph(graph->graph->clone());
    return {};
  });
}

pfrt_status* extract_part(const pfrt_graph* graph, const pfrt_string* inputs, size_t input_count,
                          const pfrt_string* outputs, size_t output_count, pfrt_graph** out) {
  return guard([&]() -> Status {
    if (!graph || !out || (input_count && !inputs) || (output_count && !outputs))
      return null_argument(!graph                   ? "graph"
                           : !out                   ? "out_graph"
                           : input_count && !inputs ? "inputs"
                                                    : "outputs");
    *out = nullptr;
    PFRT_TRY(graph->open());
    const std::shared_ptr<Graph> whole = graph->graph->clone();
    const auto ids_of = [&](const pfrt_string* names,
                            size_t count) -> Result<std::vector<ValueId>> {
      std::vector<ValueId> ids;
      for (size_t i = 0; i < count; ++i) {
        PFRT_ASSIGN(const ValueId id, named_value(*whole, names[i], "extracting a part at"));
        ids.push_back(id);
      }
      return ids;
    };
    PFRT_ASSIGN(const std::vector<ValueId> from, ids_of(inputs, input_count));
    PFRT_ASSIGN(const std::vector<ValueId> to, ids_of(outputs, output_count));
    if (whole->depth == 0) PFRT_TRY(infer_types(*whole));
    PFRT_ASSIGN(std::shared_ptr<Graph> part, extract(*whole, from, to));
    *out = new pfrt_graph(std::move(part));
    return {};
  });
}

pfrt_status* set_name(pfrt_graph* graph, pfrt_string name) {
  return edit(graph, [&](Graph& g) -> Status {
    g.name = view(name);
    return {};
  });
}

pfrt_status* remove_opset(pfrt_graph* graph, pfrt_string domain) {
  return edit(graph, [&](Graph& g) -> Status {
    if (g.opsets.erase(view(domain) == "ai.onnx" ? std::string() : std::string(view(domain))))
      return {};
    return error(Code::kNOT_FOUND, "removing the import of domain '", domain,
                 "': the graph does not import it");
  });
}

pfrt_status* remove_metadata(pfrt_graph* graph, pfrt_string key) {
  return edit(graph, [&](Graph& g) -> Status {
    if (std::erase_if(g.metadata, [&](const auto& entry) { return entry.first == view(key); }))
      return {};
    return error(Code::kNOT_FOUND, "removing metadata '", key, "': there is no such key");
  });
}

// ---- finding ----

pfrt_status* node_by_id(const pfrt_graph* graph, uint32_t id, pfrt_node* out) {
  return guard([&]() -> Status {
    if (!graph || !out) return null_argument(graph ? "out_node" : "graph");
    pfrt_graph* g = mutable_handle(graph);
    PFRT_ASSIGN(const Node* node, live_node(*g->graph, id));
    return give_node(g, *node, out);
  });
}

pfrt_status* find_node(const pfrt_graph* graph, pfrt_string name, uint32_t* out) {
  return guard([&]() -> Status {
    if (!graph || !out) return null_argument(graph ? "out_id" : "graph");
    *out = PFRT_NO_NODE;
    const Graph& g = *graph->graph;
    for (NodeId id = 0; id < g.node_capacity() && *out == PFRT_NO_NODE; ++id)
      if (const Node* node = g.node(id); node && node->name == view(name)) *out = id;
    if (*out != PFRT_NO_NODE) return {};
    return error(Code::kNOT_FOUND, "looking for node '", name,
                 "': the graph has none of that name");
  });
}

uint32_t next_node(const pfrt_graph* graph, uint32_t id) {
  if (!graph) return PFRT_NO_NODE;
  const Graph& g = *graph->graph;
  for (size_t next = id == PFRT_NO_NODE ? 0 : size_t{id} + 1; next < g.node_capacity(); ++next)
    if (g.node(static_cast<NodeId>(next))) return static_cast<uint32_t>(next);
  return PFRT_NO_NODE;
}

pfrt_status* producer(const pfrt_graph* graph, pfrt_string value, uint32_t* out) {
  return guard([&]() -> Status {
    if (!graph || !out) return null_argument(graph ? "out_id" : "graph");
    *out = PFRT_NO_NODE;
    PFRT_ASSIGN(const ValueId id, named_value(*graph->graph, value, "looking for what makes"));
    *out = graph->graph->at(id).producer;
    return {};
  });
}

pfrt_status* consumers(pfrt_graph* graph, pfrt_string value, const uint32_t** out, size_t* count) {
  return guard([&]() -> Status {
    if (!graph || !out || !count) return null_argument("graph, out_ids or out_count");
    *out = nullptr;
    *count = 0;
    PFRT_TRY(graph->open());
    Graph& g = *graph->graph;
    PFRT_ASSIGN(const ValueId id, named_value(g, value, "looking for what uses"));
    PFRT_TRY(g.bind_captures());
    graph->refresh();
    graph->users.clear();
    for (NodeId n : g.node_ids()) {
      const std::vector<ValueId> used = g.used_by(*g.node(n));
      if (std::find(used.begin(), used.end(), id) != used.end()) graph->users.push_back(n);
    }
    *out = graph->users.data();
    *count = graph->users.size();
    return {};
  });
}

// ---- nodes ----

pfrt_status* rename_node(pfrt_graph* graph, uint32_t id, pfrt_string name) {
  return edit(graph, [&](Graph& g) -> Status {
    PFRT_ASSIGN(Node * node, live_node(g, id));
    node->name = view(name);
    return {};
  });
}

pfrt_status* set_node_inputs(pfrt_graph* graph, uint32_t id, const pfrt_string* names,
                             size_t count) {
  return edit(graph, [&](Graph& g) -> Status {
    PFRT_TRY(check_names(names, count));
    PFRT_ASSIGN(Node * node, live_node(g, id));
    node->inputs = values_of(g, names, count);
    return {};
  });
}

pfrt_status* set_node_outputs(pfrt_graph* graph, uint32_t id, const pfrt_string* names,
                              size_t count) {
  return edit(graph, [&](Graph& g) -> Status {
    PFRT_TRY(check_names(names, count));
    PFRT_ASSIGN(const Node* node, live_node(g, id));
    std::vector<ValueId> outputs = values_of(g, names, count);
    PFRT_TRY(g.check_outputs(*node, outputs, "changing the outputs of "));
    g.set_outputs(id, std::move(outputs));
    return {};
  });
}

pfrt_status* remove_attr(pfrt_graph* graph, uint32_t id, pfrt_string name) {
  return edit(graph, [&](Graph& g) -> Status {
    PFRT_ASSIGN(Node * node, live_node(g, id));
    if (!node->attr(view(name)))
      return error(Code::kNOT_FOUND, "removing attribute '", name, "' of ", describe(g, *node),
                   ": it has no such attribute");
    node->drop_attr(view(name));
    return {};
  });
}

// ---- values ----

pfrt_status* replace_uses_of(pfrt_graph* graph, pfrt_string from, pfrt_string to, uint32_t except) {
  return edit(graph, [&](Graph& g) -> Status {
    PFRT_ASSIGN(const ValueId old, named_value(g, from, "replacing the uses of"));
    PFRT_ASSIGN(const ValueId fresh, named_value(g, to, "replacing uses by"));
    if (except != PFRT_NO_NODE) {
      PFRT_ASSIGN([[maybe_unused]] const Node* node, live_node(g, except));
    }
    return replace_uses(g, old, fresh, except);
  });
}

pfrt_status* rename_value_of(pfrt_graph* graph, pfrt_string from, pfrt_string to) {
  return edit(graph, [&](Graph& g) -> Status {
    PFRT_ASSIGN(const ValueId id, named_value(g, from, "renaming"));
    if (to.size == 0)
      return error(Code::kINVALID_ARGUMENT, "renaming '", from, "': the new name is empty");
    return rename_value(g, id, view(to));
  });
}

pfrt_status* replace_input(pfrt_graph* graph, size_t index, const pfrt_value_info* info) {
  return edit(graph, [&](Graph& g) -> Status {
    PFRT_TRY(check_index("replacing graph input", index, g.inputs.size()));
    PFRT_ASSIGN(const ValueId id, described_anew(g, info, "replacing a graph input"));
    if (g.at(id).producer != kNoId)
      return error(Code::kVALIDATION, "replacing graph input ", index, " by '", g.at(id).name,
                   "': a node produces it already");
    g.inputs[index] = id;
    return {};
  });
}

pfrt_status* remove_input(pfrt_graph* graph, size_t index) {
  return edit(graph, [&](Graph& g) -> Status {
    PFRT_TRY(check_index("removing graph input", index, g.inputs.size()));
    g.inputs.erase(g.inputs.begin() + static_cast<std::ptrdiff_t>(index));
    return {};
  });
}

pfrt_status* replace_output(pfrt_graph* graph, size_t index, const pfrt_value_info* info) {
  return edit(graph, [&](Graph& g) -> Status {
    PFRT_TRY(check_index("replacing graph output", index, g.outputs.size()));
    PFRT_ASSIGN(g.outputs[index], described_anew(g, info, "replacing a graph output"));
    return {};
  });
}

pfrt_status* remove_output(pfrt_graph* graph, size_t index) {
  return edit(graph, [&](Graph& g) -> Status {
    PFRT_TRY(check_index("removing graph output", index, g.outputs.size()));
    g.outputs.erase(g.outputs.begin() + static_cast<std::ptrdiff_t>(index));
    return {};
  });
}

// ---- initializers ----

pfrt_status* initializer(const pfrt_graph* graph, pfrt_string name, pfrt_value** out) {
  return guard([&]() -> Status {
    if (!graph || !out) return null_argument(graph ? "out_value" : "graph");
    *out = nullptr;
    pfrt_graph* g = mutable_handle(graph);
    PFRT_ASSIGN(const ValueId id, named_initializer(*g->graph, name, "looking for initializer"));
    *out = value_handle(g, g->graph->at(id).constant);
    return {};
  });
}

pfrt_status* remove_initializer(pfrt_graph* graph, pfrt_string name) {
  return edit(graph, [&](Graph& g) -> Status {
    PFRT_ASSIGN(const ValueId id, named_initializer(g, name, "removing initializer"));
    graph->drop_value(g.at(id).constant.get());
    g.make_fed(id);
    return {};
  });
}

pfrt_status* initializer_for_write(pfrt_graph* graph, pfrt_string name, pfrt_value** out) {
  return guard([&]() -> Status {
    if (!graph || !out) return null_argument(graph ? "out_value" : "graph");
    *out = nullptr;
    PFRT_TRY(graph->open());
    graph->refresh();
    Graph& g = *graph->graph;
    PFRT_ASSIGN(const ValueId id, named_initializer(g, name, "writing initializer"));
    ValuePtr& constant = g.at(id).constant;
    if (constant->kind != PFRT_VALUE_TENSOR)
      return error(Code::kUNSUPPORTED, "writing initializer '", name,
                   "': it is sparse; put another in its place with add_initializer_value");
    // The constant is written in place only if this graph alone holds it, and nobody has retained
    // the handle that was given out for it before.
    const auto handle = graph->values.find(constant.get());
    const long here = handle == graph->values.end() ? 1 : 2;
    const bool alone = constant.use_count() == here && constant->tensor.buffer &&
                       constant->tensor.buffer->owned() &&
                       constant->tensor.buffer.use_count() == 1 &&
                       (here == 1 || !handle->second->shared());
    if (!alone) {
      const Tensor& old = constant->tensor;
      const void* const source = old.deferred() ? old.origin() : old.data();
      PFRT_ASSIGN(Tensor copy, Tensor::copy_of(old.dtype, old.dims, old.data()));
      if (const auto file = os::health_of(source); file && file->check())
        return file->status().prepend(message("writing initializer '", name, "'"));
      ValuePtr made = Value::of(std::move(copy));
      graph->drop_value(constant.get());
      constant = std::move(made);
    }
    *out = value_handle(graph, constant);
    return {};
  });
}

pfrt_status* validate_everything(pfrt_graph* graph, pfrt_env*) {
  return guard([&]() -> Status {
    if (!graph) return null_argument("graph");
    PFRT_TRY(graph->open());
    return validate_all(*graph->graph);
  });
}

}  // namespace pfrt::capi
