/* SPDX-License-Identifier: Apache-2.0 */
#define SPOIL .rounds_up = 1
#include "test/plugins/bad/add_provider.h"
