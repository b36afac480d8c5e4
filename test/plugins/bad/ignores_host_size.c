/* SPDX-License-Identifier: Apache-2.0
 *
 * Fills in the whole description of a later header, whatever size the host's has.
 */
#include <string.h>

#include "test/plugins/bad/describe.h"

PFRT_EXPORT pfrt_code pfrt_plugin_query(const pfrt_host_info* host, pfrt_plugin_desc* out_desc) {
  (void)host;
  describe(out_desc);
  memset((char*)out_desc + sizeof *out_desc, 0, 8);
  return PFRT_CODE_OK;
}
