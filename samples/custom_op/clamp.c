/* SPDX-License-Identifier: Apache-2.0
 *
 * A plug-in that brings one operator: sample.Clamp limits a float32 tensor to [lo, hi], two float
 * attributes. Any model that has a node of that name and domain runs once the file is in a plug-in
 * folder.
 */
#include <pyflame_rt/custom.h>
#include <stdlib.h>
#include <string.h>

#define TEXT(literal) \
  { literal, sizeof literal - 1 }

static pfrt_string text(const char* literal) {
  const pfrt_string out = {literal, strlen(literal)};
  return out;
}

/* Attributes are |attr_size| bytes apart, so that later versions can make them longer. */
static float attribute(const pfrt_snapshot_node* node, uint32_t attr_size, const char* name,
                       float otherwise) {
  for (uint64_t i = 0; i < node->attr_count; ++i) {
    const pfrt_snapshot_attr* attr =
        (const pfrt_snapshot_attr*)((const char*)node->attrs + i * attr_size);
    if (attr->type == PFRT_ATTR_FLOAT && attr->name.size == strlen(name) &&
        memcmp(attr->name.data, name, attr->name.size) == 0)
      return attr->f;
  }
  return otherwise;
}

typedef struct limits {
  float lo, hi;
} limits;

/* Called once for each node, when a session is made. What it prepares is given to all runs of the
 * node, which may be under way on several threads at once. */
static pfrt_code create_limits(void* user, const pfrt_op_create* call, void** out_state) {
  (void)user;
  limits* made = malloc(sizeof *made);
  if (!made) return PFRT_CODE_OUT_OF_MEMORY;
  made->lo = attribute(call->node, call->attr_size, "lo", -1);
  made->hi = attribute(call->node, call->attr_size, "hi", 1);
  if (made->lo > made->hi) {
    free(made);
    return call->fail(call, PFRT_CODE_INVALID_MODEL, text("attribute 'lo' is above 'hi'"));
  }
  *out_state = made;
  return PFRT_CODE_OK;
}

static void release_limits(void* user, void* state) {
  (void)user;
  free(state);
}

/* The output is what the input is. Called when a model is loaded, and for each new set of
 * dimensions. */
static pfrt_code infer(void* user, const pfrt_op_infer* call) {
  (void)user;
  const pfrt_snapshot_value* x = &call->inputs[0];
  return call->set_output(call, 0, PFRT_DTYPE_FLOAT32, x->rank, x->dims);
}

enum { CHUNK = 4096 };

static void clamp_chunk(void* arg, uint64_t chunk, uint32_t worker) {
  const pfrt_op_compute* call = (const pfrt_op_compute*)arg;
  const limits* limit = (const limits*)call->state;
  (void)worker;
  const float* x = (const float*)call->inputs[0].data;
  float* y = (float*)call->outputs[0].data;
  const uint64_t count = call->outputs[0].bytes / sizeof(float);
  for (uint64_t i = chunk * CHUNK; i < count && i < (chunk + 1) * CHUNK; ++i)
    y[i] = x[i] < limit->lo ? limit->lo : x[i] > limit->hi ? limit->hi : x[i];
}

/* The runtime's threads share the work; memory for the output is there, for infer said how much. */
static pfrt_code compute(void* user, const pfrt_op_compute* call) {
  (void)user;
  const uint64_t count = call->outputs[0].bytes / sizeof(float);
  call->parallel(call, (count + CHUNK - 1) / CHUNK, clamp_chunk, (void*)call);
  return call->stop(call);
}

/* Nodes of other types are refused. An operator of the same name for float64 would stand beside
 * this one, in the same list. */
static const pfrt_dtype kFloat32[] = {PFRT_DTYPE_FLOAT32};

static const pfrt_custom_op kClamp = {
    .struct_size = sizeof(pfrt_custom_op),
    .abi = PFRT_ABI_VERSION,
    .name = TEXT("Clamp"),
    .domain = TEXT("sample"),
    .since_version = 1,
    .min_inputs = 1,
    .input_types = kFloat32,
    .output_types = kFloat32,
    .input_type_count = 1,
    .output_type_count = 1,
    .infer = infer,
    .compute = compute,
    .create_state = create_limits,
    .release_state = release_limits,
};
static const pfrt_custom_op* const kOps[] = {&kClamp};
static const pfrt_ops_table kTable = {
    .struct_size = sizeof(pfrt_ops_table),
    .abi = PFRT_ABI_VERSION,
    .ops = kOps,
    .count = 1,
};

PFRT_EXPORT pfrt_code pfrt_plugin_query(const pfrt_host_info* host, pfrt_plugin_desc* out_desc) {
  out_desc->abi = PFRT_ABI_VERSION;
  out_desc->abi_major = PFRT_ABI_MAJOR;
  out_desc->min_minor = 0;
  out_desc->max_minor = PFRT_ABI_MINOR;
  out_desc->kind = PFRT_PLUGIN_OPS;
#if defined(__SANITIZE_ADDRESS__)
  out_desc->sanitizer = PFRT_SANITIZER_ADDRESS;
#elif defined(__SANITIZE_THREAD__)
  out_desc->sanitizer = PFRT_SANITIZER_THREAD;
#endif
  out_desc->name = text("SampleOperators");
  out_desc->version = text("1.0");
  out_desc->table = &kTable;
  return host->abi_major == PFRT_ABI_MAJOR ? PFRT_CODE_OK : PFRT_CODE_PLUGIN;
}
