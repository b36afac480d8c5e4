/* SPDX-License-Identifier: Apache-2.0 */
#define SPOIL .knows_all_verbs = 1
#include "test/plugins/bad/add_provider.h"
