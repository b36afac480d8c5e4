/* SPDX-License-Identifier: Apache-2.0
 *
 * Ends the process as if all were well, when it is asked what it is, after a byte to whoever may
 * listen.
 */
#include <stdlib.h>
#include <unistd.h>

#include "test/plugins/bad/describe.h"

PFRT_EXPORT pfrt_code pfrt_plugin_query(const pfrt_host_info* host, pfrt_plugin_desc* out_desc) {
  (void)host;
  describe(out_desc);
  for (int fd = 3; fd < 64; ++fd) {
    const ssize_t written = write(fd, "\x04", 1);
    (void)written;
  }
  exit(0);
  return PFRT_CODE_OK;
}
