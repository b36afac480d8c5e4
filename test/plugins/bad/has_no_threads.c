/* SPDX-License-Identifier: Apache-2.0
 *
 * An executor that refuses to be made, with a reason.
 */
#include "executor.h"

static pfrt_code create(const pfrt_sink* sink, pfrt_executor* out) {
  static const char kText[] = "there are no threads on this planet";
  (void)out;
  return sink->fail(sink, PFRT_CODE_UNSUPPORTED, PFRT_NO_INDEX,
                    (pfrt_string){kText, sizeof kText - 1});
}
