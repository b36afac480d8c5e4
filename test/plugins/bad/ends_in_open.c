/* SPDX-License-Identifier: Apache-2.0
 *
 * Ends the process as if all were well, when a device is opened.
 */
#include <stdlib.h>

#include "test/plugins/bad/describe.h"

static pfrt_code end(pfrt_string device, const pfrt_key_value* options, size_t count,
                     const pfrt_sink* sink, pfrt_provider** out) {
  (void)device, (void)options, (void)count, (void)sink, (void)out;
  exit(0);
}

PFRT_EXPORT pfrt_code pfrt_plugin_query(const pfrt_host_info* host, pfrt_plugin_desc* out_desc) {
  (void)host;
  describe(out_desc);
  table.open = end;
  return PFRT_CODE_OK;
}
