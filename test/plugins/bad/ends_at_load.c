/* SPDX-License-Identifier: Apache-2.0
 *
 * Ends the process as if all were well, when it is loaded.
 */
#include <unistd.h>

#include "test/plugins/bad/describe.h"

__attribute__((constructor)) static void end(void) { _exit(0); }

PFRT_EXPORT pfrt_code pfrt_plugin_query(const pfrt_host_info* host, pfrt_plugin_desc* out_desc) {
  (void)host;
  describe(out_desc);
  return PFRT_CODE_OK;
}
