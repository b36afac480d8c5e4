/* SPDX-License-Identifier: Apache-2.0
 *
 * An optimisation pass in one file: x to the power of 2 becomes x times x. It sees custom.h alone
 * and links nothing of the runtime: the graph is read and edited with the tables that each call
 * hands over. */
#include <pyflame_rt/custom.h>
#include <string.h>

static pfrt_string text(const char* s) {
  pfrt_string out;
  out.data = s;
  out.size = strlen(s);
  return out;
}

static int equals(pfrt_string s, const char* other) {
  return s.size == strlen(other) && (s.size == 0 || memcmp(s.data, other, s.size) == 0);
}

/* Returns whether the value is an initializer of a single float32, 2. */
static int is_two(const pfrt_api* api, const pfrt_graph* graph, pfrt_string name) {
  pfrt_value* value = NULL;
  pfrt_tensor tensor;
  pfrt_status* status = api->graph->initializer(graph, name, &value);
  memset(&tensor, 0, sizeof tensor);
  tensor.struct_size = sizeof tensor;
  if (status == NULL) status = api->value->tensor(value, &tensor);
  if (status != NULL) {
    api->status->release(status);
    return 0;
  }
  return tensor.dtype == PFRT_DTYPE_FLOAT32 && tensor.bytes == sizeof(float) &&
         *(const float*)tensor.data == 2.0f;
}

/* Puts Mul(x, x) in the place of |old|; NULL on success. */
static pfrt_status* square(const pfrt_api* api, pfrt_graph* graph, const pfrt_node* old) {
  const uint32_t id = old->id;
  char before[256], after[256];
  pfrt_string inputs[2], from, to;
  pfrt_node node;
  pfrt_status* status;
  /* An edit ends what |old| points to, so its names are copied. Long names are left alone. */
  from = old->outputs[0];
  if (from.size + 8 > sizeof before) return NULL;
  memcpy(before, from.data, from.size);
  memcpy(after, from.data, from.size);
  memcpy(after + from.size, "_squared", 8);
  from.data = before;
  to.data = after;
  to.size = from.size + 8;

  memset(&node, 0, sizeof node);
  node.struct_size = sizeof node;
  node.name = old->name;
  node.op = text("Mul");
  inputs[0] = inputs[1] = old->inputs[0];
  node.inputs = inputs;
  node.input_count = 2;
  node.outputs = &to;
  node.output_count = 1;
  status = api->graph->add_node(graph, &node, NULL);
  if (status == NULL) status = api->graph->replace_uses(graph, from, to, PFRT_NO_NODE);
  if (status == NULL) status = api->graph->remove_node(graph, id);
  return status;
}

static pfrt_code run(void* user, pfrt_pass_call* call) {
  const pfrt_api* api = call->api;
  uint32_t id = PFRT_NO_NODE;
  (void)user;
  while ((id = api->graph->next_node(call->graph, id)) != PFRT_NO_NODE) {
    pfrt_node node;
    pfrt_status* status;
    memset(&node, 0, sizeof node);
    node.struct_size = sizeof node;
    status = api->graph->node_by_id(call->graph, id, &node);
    if (status == NULL && equals(node.op, "Pow") && node.domain.size == 0 &&
        node.input_count == 2 && is_two(api, call->graph, node.inputs[1])) {
      status = square(api, call->graph, &node);
      call->stats->modified = 1;
      ++call->stats->nodes_removed;
      ++call->stats->nodes_added;
    }
    if (status != NULL) {
      const pfrt_code code = call->sink->fail(call->sink, api->status->code(status), PFRT_NO_INDEX,
                                              api->status->message(status));
      api->status->release(status);
      return code;
    }
  }
  return PFRT_CODE_OK;
}

static const pfrt_custom_pass kPass = {
    .struct_size = sizeof(pfrt_custom_pass),
    .abi = PFRT_ABI_VERSION,
    .name = {"SquarePass", 10},
    .level = PFRT_PASS_EXTENDED,
    .run = run,
};
static const pfrt_custom_pass* const kPasses[] = {&kPass};
static const pfrt_pass_table kTable = {sizeof(pfrt_pass_table), PFRT_ABI_VERSION, kPasses, 1};

PFRT_EXPORT pfrt_code pfrt_plugin_query(const pfrt_host_info* host, pfrt_plugin_desc* out_desc);

pfrt_code pfrt_plugin_query(const pfrt_host_info* host, pfrt_plugin_desc* out_desc) {
  out_desc->abi = PFRT_ABI_VERSION;
  out_desc->abi_major = PFRT_ABI_MAJOR;
  out_desc->min_minor = 0;
  out_desc->max_minor = PFRT_ABI_MINOR;
  out_desc->kind = PFRT_PLUGIN_PASS;
#if defined(__SANITIZE_ADDRESS__)
  out_desc->sanitizer = PFRT_SANITIZER_ADDRESS;
#elif defined(__SANITIZE_THREAD__)
  out_desc->sanitizer = PFRT_SANITIZER_THREAD;
#endif
  out_desc->name = text("SamplePasses");
  out_desc->version = text("1.0");
  out_desc->table = &kTable;
  return host->abi_major == PFRT_ABI_MAJOR ? PFRT_CODE_OK : PFRT_CODE_PLUGIN;
}
