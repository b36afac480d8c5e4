/* SPDX-License-Identifier: Apache-2.0 */
#define SPOIL .starts_threads = 1
#include "test/plugins/bad/add_provider.h"
