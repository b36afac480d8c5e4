/* SPDX-License-Identifier: Apache-2.0 */
#include "test/plugins/bad/describe.h"

PFRT_EXPORT pfrt_code pfrt_plugin_query(const pfrt_host_info* host, pfrt_plugin_desc* out_desc) {
  (void)host;
  describe(out_desc);
  out_desc->reserved = 1;
  return PFRT_CODE_OK;
}
