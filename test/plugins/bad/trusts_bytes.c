/* SPDX-License-Identifier: Apache-2.0 */
#define SPOIL .trusts_bytes = 1
#include "test/plugins/bad/add_provider.h"
