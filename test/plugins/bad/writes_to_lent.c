/* SPDX-License-Identifier: Apache-2.0 */
#define SPOIL .writes_to_lent = 1
#include "test/plugins/bad/add_provider.h"
