/* SPDX-License-Identifier: Apache-2.0 */
#define SPOIL .counts_step_7 = 1
#include "test/plugins/bad/add_provider.h"
