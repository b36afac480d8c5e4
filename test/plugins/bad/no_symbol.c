/* SPDX-License-Identifier: Apache-2.0 */
#include "pyflame_rt/plugin.h"

PFRT_EXPORT int unrelated(void);
int unrelated(void) { return 1; }
