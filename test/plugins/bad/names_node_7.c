/* SPDX-License-Identifier: Apache-2.0 */
#define SPOIL .names_node_7 = 1
#include "test/plugins/bad/add_provider.h"
