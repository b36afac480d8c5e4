/* SPDX-License-Identifier: Apache-2.0 */
#include "pyflame_rt/plugin.h"

int gone(void);
PFRT_EXPORT int needs_it(void);
int needs_it(void) { return gone(); }
