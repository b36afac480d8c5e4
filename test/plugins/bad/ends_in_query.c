/* SPDX-License-Identifier: Apache-2.0
 *
 * Ends the process as if all were well, when it is asked what it is.
 */
#include <stdlib.h>

#include "test/plugins/bad/describe.h"

PFRT_EXPORT pfrt_code pfrt_plugin_query(const pfrt_host_info* host, pfrt_plugin_desc* out_desc) {
  (void)host;
  describe(out_desc);
  exit(0);
  return PFRT_CODE_OK;
}
