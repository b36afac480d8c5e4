/* SPDX-License-Identifier: Apache-2.0 */
#define SPOIL .newer_steps = 1
#include "test/plugins/bad/add_provider.h"
