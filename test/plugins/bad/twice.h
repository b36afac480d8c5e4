/* SPDX-License-Identifier: Apache-2.0
 *
 * A plug-in of operators: Twice of float32. It is right unless the file that includes this spoils
 * something: #define SPOIL .writes_past = 1
 */
#pragma once

#include "pyflame_rt/custom.h"

struct spoils {
  int writes_past; /* writes an element more than there are */
  int same_twice;  /* lists the operator twice */
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

static pfrt_code compute(void* user, const pfrt_op_compute* context) {
  (void)user;
  const float* x = context->inputs[0].data;
  float* y = context->outputs[0].data;
  const uint64_t count = context->inputs[0].bytes / sizeof(float);
  for (uint64_t i = 0; i < count; ++i) y[i] = 2 * x[i];
  if (spoil.writes_past) y[count] = 0;
  return PFRT_CODE_OK;
}

static const pfrt_custom_op kTwice = {
    .struct_size = sizeof(pfrt_custom_op),
    .abi = PFRT_ABI_VERSION,
    .name = {"Twice", 5},
    .domain = {"test.ops", 8},
    .since_version = 1,
    .min_inputs = 1,
    .infer = infer,
    .compute = compute,
};

PFRT_EXPORT pfrt_code pfrt_plugin_query(const pfrt_host_info* host, pfrt_plugin_desc* out_desc) {
  static const pfrt_custom_op* const kOps[] = {&kTwice, &kTwice};
  static pfrt_ops_table table = {sizeof(pfrt_ops_table), PFRT_ABI_VERSION, kOps, 1};
  (void)host;
  if (spoil.same_twice) table.count = 2;
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
