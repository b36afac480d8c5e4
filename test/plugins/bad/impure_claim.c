/* SPDX-License-Identifier: Apache-2.0 */
#define SPOIL .impure_claim = 1
#include "test/plugins/bad/add_provider.h"
