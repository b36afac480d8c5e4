/* SPDX-License-Identifier: Apache-2.0 */
#define SPOIL .odd_fingerprint = 1
#include "test/plugins/bad/add_provider.h"
