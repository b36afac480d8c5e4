/* SPDX-License-Identifier: Apache-2.0
 *
 * A good importer: every file is y = x + w, with w in the plug-in's own memory, which it takes back
 * by a function of its own.
 */
#include <string.h>

#include "pyflame_rt/plugin.h"

static float weights[2] = {10, 20};
static void release_weights(void* user, void* data) {
  (void)user;
  memset(data, 0, sizeof weights);
}

static pfrt_string text(const char* s) { return (pfrt_string){s, strlen(s)}; }

static uint32_t probe(const void* data, uint64_t size) {
  return size >= 4 && memcmp(data, "LEND", 4) == 0 ? 100 : 0;
}

/* Reports and releases the status. */
static pfrt_code report(const pfrt_api* api, const pfrt_sink* sink, pfrt_status* status) {
  if (!status) return PFRT_CODE_OK;
  const pfrt_code code = api->status->code(status);
  sink->fail(sink, code, PFRT_NO_INDEX, api->status->message(status));
  api->status->release(status);
  return code;
}

static pfrt_code load(const pfrt_import_request* request, const pfrt_sink* sink) {
  static const int64_t kDims[] = {2};
  const pfrt_graph_api* g = request->api->graph;
  if (probe(request->data, request->size) == 0)
    return sink->fail(sink, PFRT_CODE_INVALID_MODEL, PFRT_NO_INDEX,
                      text("it does not start with LEND"));
  const pfrt_tensor tensor = {
      .struct_size = sizeof tensor,
      .dtype = PFRT_DTYPE_FLOAT32,
      .rank = 1,
      .data = weights,
      .bytes = sizeof weights,
      .dims = kDims,
  };
  pfrt_value_info info = {
      .struct_size = sizeof info,
      .kind = PFRT_VALUE_TENSOR,
      .dtype = PFRT_DTYPE_FLOAT32,
      .rank = 1,
      .name = text("x"),
      .dims = kDims,
  };
  const pfrt_string inputs[] = {text("x"), text("w")}, output = text("y");
  const pfrt_node node = {
      .struct_size = sizeof node,
      .op = text("Add"),
      .inputs = inputs,
      .input_count = 2,
      .outputs = &output,
      .output_count = 1,
  };
  pfrt_code code = report(request->api, sink, g->add_input(request->graph, &info));
  if (!code)
    code = report(request->api, sink,
                  g->add_initializer(request->graph, inputs[1], &tensor, 1, release_weights, NULL));
  if (!code) code = report(request->api, sink, g->add_node(request->graph, &node, NULL));
  info.name = output;
  if (!code) code = report(request->api, sink, g->add_output(request->graph, &info));
  return code;
}

static const pfrt_string kExtensions[] = {{"lend", 4}};
static const pfrt_importer_table kTable = {
    .struct_size = sizeof(pfrt_importer_table),
    .abi = PFRT_ABI_VERSION,
    .extensions = kExtensions,
    .extension_count = 1,
    .probe = probe,
    .load = load,
};

PFRT_EXPORT pfrt_code pfrt_plugin_query(const pfrt_host_info* host, pfrt_plugin_desc* out_desc) {
  (void)host;
  out_desc->abi = PFRT_ABI_VERSION;
  out_desc->abi_major = PFRT_ABI_MAJOR;
  out_desc->min_minor = 0;
  out_desc->max_minor = PFRT_ABI_MINOR;
  out_desc->kind = PFRT_PLUGIN_IMPORT;
#if defined(PFRT_SANITIZE_ADDRESS)
  out_desc->sanitizer = PFRT_SANITIZER_ADDRESS;
#elif defined(PFRT_SANITIZE_THREAD)
  out_desc->sanitizer = PFRT_SANITIZER_THREAD;
#endif
  out_desc->name = text("LEND");
  out_desc->version = text("9.9");
  out_desc->table = &kTable;
  return PFRT_CODE_OK;
}
