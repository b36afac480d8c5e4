/* SPDX-License-Identifier: Apache-2.0
 *
 * A plug-in of operators: Twice of float32, its factor in a state, and Named of any type, which
 * gives strings. They are right unless the file that includes this spoils something: #define SPOIL
 * .writes_past = 1
 */
#pragma once

#include <stdlib.h>

#include "pyflame_rt/custom.h"

struct spoils {
  int writes_past;    /* writes an element more than there are */
  int same_twice;     /* lists the operator twice */
  int newer_member;   /* sets a member of a later minor */
  int uses_state_up;  /* each run changes the node's state */
  int writes_strings; /* writes elements of strings in place of set_strings */
};
static const struct spoils spoil = {SPOIL};

static pfrt_code infer(void* user, const pfrt_op_infer* context) {
  static const char kText[] = "Twice takes float32";
  (void)user;
  if (context->inputs[0].dtype != PFRT_DTYPE_FLOAT32)
    return context->fail(context, PFRT_CODE_DTYPE_MISMATCH, (pfrt_string){kText, sizeof kText - 1});
  return context->set_output(context, 0, PFRT_DTYPE_FLOAT32, context->inputs[0].rank,
                             context->inputs[0].dims);
}

static pfrt_code create_factor(void* user, const pfrt_op_create* context, void** out_state) {
  float* factor = malloc(sizeof *factor);
  (void)user;
  if (!factor) return PFRT_CODE_OUT_OF_MEMORY;
  *factor = context->input_count == 1 ? 2 : 0;
  *out_state = factor;
  return PFRT_CODE_OK;
}

static void release_factor(void* user, void* state) {
  (void)user;
  free(state);
}

static pfrt_code compute(void* user, const pfrt_op_compute* context) {
  (void)user;
  float* factor = context->state;
  const float* x = context->inputs[0].data;
  float* y = context->outputs[0].data;
  const uint64_t count = context->inputs[0].bytes / sizeof(float);
  for (uint64_t i = 0; i < count; ++i) y[i] = *factor * x[i];
  if (spoil.writes_past) y[count] = 0;
  if (spoil.uses_state_up) *factor = *factor + 1;
  return PFRT_CODE_OK;
}

static pfrt_code compute_names(void* user, const pfrt_op_compute* context) {
  static const pfrt_string kNames[] = {{"first", 5}, {"second", 6}};
  static const int64_t kDims[] = {3};
  void* names = NULL;
  (void)user;
  const pfrt_code code = context->alloc_output(context, 0, PFRT_DTYPE_STRING, kDims, 1, &names);
  if (code != PFRT_CODE_OK) return code;
  if (spoil.writes_strings) ((pfrt_string*)names)[2] = kNames[0];
  return context->set_strings(context, 0, 1, kNames, 2);
}

static const pfrt_dtype kStrings[] = {PFRT_DTYPE_STRING};
static const pfrt_custom_op kNamed = {
    .struct_size = sizeof(pfrt_custom_op),
    .abi = PFRT_ABI_VERSION,
    .name = {"Named", 5},
    .domain = {"test.ops", 8},
    .min_inputs = 1,
    .output_types = kStrings,
    .output_type_count = 1,
    .compute = compute_names,
};

#define TWICE(size)                                                                                \
  {                                                                                                \
    .struct_size = size, .abi = PFRT_ABI_VERSION, .name = {"Twice", 5}, .domain = {"test.ops", 8}, \
    .since_version = 1, .min_inputs = 1, .infer = infer, .compute = compute,                       \
    .create_state = create_factor, .release_state = release_factor,                                \
  }
static const pfrt_custom_op kTwice = TWICE(sizeof(pfrt_custom_op));
static const struct newer {
  pfrt_custom_op op;
  uint64_t more[3];
} kNewer = {TWICE(sizeof(struct newer)), {0, 1, 0}};

PFRT_EXPORT pfrt_code pfrt_plugin_query(const pfrt_host_info* host, pfrt_plugin_desc* out_desc) {
  static const pfrt_custom_op* const kOps[] = {&kTwice, &kNamed, &kTwice};
  static const pfrt_custom_op* const kNewerOps[] = {&kNewer.op};
  static pfrt_ops_table table = {sizeof(pfrt_ops_table), PFRT_ABI_VERSION, kOps, 2};
  (void)host;
  if (spoil.same_twice) table.count = 3;
  if (spoil.newer_member) {
    table.ops = kNewerOps;
    table.count = 1;
  }
  out_desc->abi = PFRT_ABI_VERSION;
  out_desc->abi_major = PFRT_ABI_MAJOR;
  out_desc->min_minor = 0;
  out_desc->max_minor = PFRT_ABI_MINOR;
  out_desc->kind = PFRT_PLUGIN_OPS;
#if defined(PFRT_SANITIZE_ADDRESS)
  out_desc->sanitizer = PFRT_SANITIZER_ADDRESS;
#elif defined(PFRT_SANITIZE_THREAD)
  out_desc->sanitizer = PFRT_SANITIZER_THREAD;
#endif
  out_desc->name = (pfrt_string){"Twice", 5};
  out_desc->version = (pfrt_string){"9.9", 3};
  out_desc->table = &table;
  return PFRT_CODE_OK;
}
