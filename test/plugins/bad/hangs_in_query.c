/* SPDX-License-Identifier: Apache-2.0
 *
 * Closes what is open, as a daemon does, and does not answer when it is asked what it is.
 */
#include <unistd.h>

#include "test/plugins/bad/describe.h"

PFRT_EXPORT pfrt_code pfrt_plugin_query(const pfrt_host_info* host, pfrt_plugin_desc* out_desc) {
  (void)host;
  describe(out_desc);
  for (int fd = 3; fd < 1024; ++fd) close(fd);
  for (;;) pause();
  return PFRT_CODE_OK;
}
