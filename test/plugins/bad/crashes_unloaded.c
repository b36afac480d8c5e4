/* SPDX-License-Identifier: Apache-2.0 */
#define SPOIL .crashes_unloaded = 1
#include "test/plugins/bad/add_provider.h"
