/* SPDX-License-Identifier: Apache-2.0 */
#define SPOIL .one_size = 1
#include "test/plugins/bad/add_provider.h"
