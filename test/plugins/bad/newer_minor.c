/* SPDX-License-Identifier: Apache-2.0 */
#include "test/plugins/bad/describe.h"

PFRT_EXPORT pfrt_code pfrt_plugin_query(const pfrt_host_info* host, pfrt_plugin_desc* out_desc) {
  (void)host;
  describe(out_desc);
  out_desc->abi = PFRT_MAKE_ABI(PFRT_ABI_MAJOR, PFRT_ABI_MINOR + 5);
  out_desc->min_minor = PFRT_ABI_MINOR + 3;
  out_desc->max_minor = PFRT_ABI_MINOR + 5;
  return PFRT_CODE_PLUGIN;
}
