/* SPDX-License-Identifier: Apache-2.0
 *
 * Says that its table ends before the count.
 */
#include <stddef.h>

#include "test/plugins/ops/describe.h"

static const pfrt_ops_table kTable = {offsetof(pfrt_ops_table, count), PFRT_ABI_VERSION, NULL, 0};

PFRT_EXPORT pfrt_code pfrt_plugin_query(const pfrt_host_info* host, pfrt_plugin_desc* out_desc) {
  (void)host;
  return describe(out_desc, &kTable);
}
