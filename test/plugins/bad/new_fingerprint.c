/* SPDX-License-Identifier: Apache-2.0 */
#define SPOIL .new_fingerprint = 1
#include "test/plugins/bad/add_provider.h"
