/* SPDX-License-Identifier: Apache-2.0 */
#define SPOIL .counts_threads = 1
#include "test/plugins/bad/add_provider.h"
