/* SPDX-License-Identifier: Apache-2.0
 *
 * Brings a good operator and one whose name is a built-in's: neither is registered.
 */
#include "test/plugins/ops/describe.h"

static pfrt_code compute(void* user, const pfrt_op_compute* call) {
  (void)user, (void)call;
  return PFRT_CODE_UNSUPPORTED;
}

static const pfrt_custom_op kGood = {.struct_size = sizeof(pfrt_custom_op),
                                     .name = {"Good", 4},
                                     .domain = {"test", 4},
                                     .compute = compute};
static const pfrt_custom_op kRelu = {
    .struct_size = sizeof(pfrt_custom_op), .name = {"Relu", 4}, .compute = compute};
static const pfrt_custom_op* const kOps[] = {&kGood, &kRelu};
static const pfrt_ops_table kTable = {sizeof(pfrt_ops_table), PFRT_ABI_VERSION, kOps, 2};

PFRT_EXPORT pfrt_code pfrt_plugin_query(const pfrt_host_info* host, pfrt_plugin_desc* out_desc) {
  (void)host;
  return describe(out_desc, &kTable);
}
