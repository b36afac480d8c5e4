/* SPDX-License-Identifier: Apache-2.0 */
#include "pyflame_rt/plugin.h"

PFRT_EXPORT int gone(void);
int gone(void) { return 1; }
