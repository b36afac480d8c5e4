/* SPDX-License-Identifier: Apache-2.0 */
#define SPOIL .nameless_counter = 1
#include "test/plugins/bad/add_provider.h"
