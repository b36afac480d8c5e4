/* SPDX-License-Identifier: Apache-2.0
 *
 * An executor that makes all calls on the calling thread, and takes no tasks.
 */
#include "executor.h"

static void loop(void* user, uint32_t workers, uint64_t n,
                 void (*fn)(void* arg, uint64_t i, uint32_t worker), void* arg) {
  (void)user, (void)workers;
  for (uint64_t i = 0; i < n; ++i) fn(arg, i, 0);
}

static pfrt_code create(const pfrt_sink* sink, pfrt_executor* out) {
  (void)sink;
  out->loop = loop;
  return PFRT_CODE_OK;
}
