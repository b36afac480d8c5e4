/* SPDX-License-Identifier: Apache-2.0
 *
 * Brings test.Tag in two versions, the newer one for two types: y = one text that says which it is,
 * made with the node's state.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/plugins/ops/describe.h"

static pfrt_code create_tag(void* user, const pfrt_op_create* call, void** out_state) {
  char* tag = malloc(64);
  if (!tag) return PFRT_CODE_OUT_OF_MEMORY;
  snprintf(tag, 64, "%s at opset %u", (const char*)user, (unsigned)call->node->opset);
  *out_state = tag;
  return PFRT_CODE_OK;
}

static void release_tag(void* user, void* state) {
  (void)user;
  free(state);
}

static pfrt_code infer(void* user, const pfrt_op_infer* call) {
  static const int64_t kDims[] = {1};
  (void)user;
  return call->set_output(call, 0, PFRT_DTYPE_STRING, 1, kDims);
}

static pfrt_code compute(void* user, const pfrt_op_compute* call) {
  const pfrt_string tag = {call->state, strlen(call->state)};
  (void)user;
  return call->set_strings(call, 0, 0, &tag, 1);
}

static const pfrt_dtype kFloat[] = {PFRT_DTYPE_FLOAT32}, kInt[] = {PFRT_DTYPE_INT64},
                        kString[] = {PFRT_DTYPE_STRING};
static char first[] = "first float32", second[] = "second float32", third[] = "second int64";

#define TAG(since, until, types, words)                                                           \
  {                                                                                               \
    .struct_size = sizeof(pfrt_custom_op), .abi = PFRT_ABI_VERSION, .name = {"Tag", 3},           \
    .domain = {"test", 4}, .since_version = since, .until_version = until, .min_inputs = 1,       \
    .input_types = types, .output_types = kString, .input_type_count = 1, .output_type_count = 1, \
    .infer = infer, .compute = compute, .user = words, .create_state = create_tag,                \
    .release_state = release_tag                                                                  \
  }
static const pfrt_custom_op kFirst = TAG(1, 1, kFloat, first), kSecond = TAG(2, 0, kFloat, second),
                            kThird = TAG(2, 0, kInt, third);
static const pfrt_custom_op* const kOps[] = {&kFirst, &kSecond, &kThird};
static const pfrt_ops_table kTable = {sizeof(pfrt_ops_table), PFRT_ABI_VERSION, kOps, 3};

PFRT_EXPORT pfrt_code pfrt_plugin_query(const pfrt_host_info* host, pfrt_plugin_desc* out_desc) {
  (void)host;
  return describe(out_desc, &kTable);
}
