/* SPDX-License-Identifier: Apache-2.0
 *
 * Does not answer when it is asked what it is.
 */
#include <unistd.h>

#include "test/plugins/bad/describe.h"

PFRT_EXPORT pfrt_code pfrt_plugin_query(const pfrt_host_info* host, pfrt_plugin_desc* out_desc) {
  (void)host;
  describe(out_desc);
  for (;;) pause();
  return PFRT_CODE_OK;
}
