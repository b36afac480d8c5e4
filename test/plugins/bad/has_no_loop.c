/* SPDX-License-Identifier: Apache-2.0
 *
 * An executor without its function.
 */
#include "executor.h"

static pfrt_code create(const pfrt_sink* sink, pfrt_executor* out) {
  (void)sink, (void)out;
  return PFRT_CODE_OK;
}
