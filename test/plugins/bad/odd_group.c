/* SPDX-License-Identifier: Apache-2.0 */
#define SPOIL .odd_group = 1
#include "test/plugins/bad/add_provider.h"
