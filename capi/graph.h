// SPDX-License-Identifier: Apache-2.0
//
// Functions shared by graph.cc and graph_edit.cc, which together make the graph table. Only these
// two include this.
#pragma once

#include "capi/handle/graph.h"
#include "capi/handle/guard.h"

namespace pfrt::capi {

// Runs |fn| as the body of a function that edits: storage that getters handed out ends.
template <typename Fn>
pfrt_status* edit(pfrt_graph* graph, Fn fn) {
  return guard([&]() -> Status {
    if (!graph) return null_argument("graph");
    PFRT_TRY(graph->open());
    graph->edited();
    return fn(*graph->graph);
  });
}

// Returns the handle, brought up to date with the graph, for getters whose storage is in it.
pfrt_graph* mutable_handle(const pfrt_graph* graph);
pfrt_value* value_handle(pfrt_graph* g, const ValuePtr& value);
Status give_node(pfrt_graph* g, const Node& from, pfrt_node* out);
// The value that |info| names, with the type it gives.
Result<ValueId> described(Graph& g, const pfrt_value_info* info, const char* doing);
// Returns NOT_FOUND once the node is removed.
Result<Node*> live_node(Graph& g, uint32_t id);

pfrt_status* clone(const pfrt_graph* graph, pfrt_graph** out);
pfrt_status* set_name(pfrt_graph* graph, pfrt_string name);
pfrt_status* remove_opset(pfrt_graph* graph, pfrt_string domain);
pfrt_status* remove_metadata(pfrt_graph* graph, pfrt_string key);
pfrt_status* node_by_id(const pfrt_graph* graph, uint32_t id, pfrt_node* out);
pfrt_status* find_node(const pfrt_graph* graph, pfrt_string name, uint32_t* out);
uint32_t next_node(const pfrt_graph* graph, uint32_t id);
pfrt_status* producer(const pfrt_graph* graph, pfrt_string value, uint32_t* out);
pfrt_status* consumers(pfrt_graph* graph, pfrt_string value, const uint32_t** out, size_t* count);
pfrt_status* rename_node(pfrt_graph* graph, uint32_t id, pfrt_string name);
pfrt_status* set_node_inputs(pfrt_graph* graph, uint32_t id, const pfrt_string* names,
                             size_t count);
pfrt_status* set_node_outputs(pfrt_graph* graph, uint32_t id, const pfrt_string* names,
                              size_t count);
pfrt_status* remove_attr(pfrt_graph* graph, uint32_t id, pfrt_string name);
pfrt_status* replace_uses_of(pfrt_graph* graph, pfrt_string from, pfrt_string to, uint32_t except);
pfrt_status* rename_value_of(pfrt_graph* graph, pfrt_string from, pfrt_string to);
pfrt_status* replace_input(pfrt_graph* graph, size_t index, const pfrt_value_info* info);
pfrt_status* remove_input(pfrt_graph* graph, size_t index);
pfrt_status* replace_output(pfrt_graph* graph, size_t index, const pfrt_value_info* info);
pfrt_status* remove_output(pfrt_graph* graph, size_t index);
pfrt_status* initializer(const pfrt_graph* graph, pfrt_string name, pfrt_value** out);
pfrt_status* remove_initializer(pfrt_graph* graph, pfrt_string name);
pfrt_status* initializer_for_write(pfrt_graph* graph, pfrt_string name, pfrt_value** out);
pfrt_status* extract_part(const pfrt_graph* graph, const pfrt_string* inputs, size_t input_count,
                          const pfrt_string* outputs, size_t output_count, pfrt_graph** out);
pfrt_status* validate_everything(pfrt_graph* graph, pfrt_env* env);

}  // namespace pfrt::capi
