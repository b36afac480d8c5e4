/* SPDX-License-Identifier: Apache-2.0 */
#define SPOIL .double_release = 1
#include "test/plugins/bad/add_provider.h"
