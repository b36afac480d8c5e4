/* SPDX-License-Identifier: Apache-2.0 */
#define SPOIL .answers_twice = 1
#include "test/plugins/bad/add_provider.h"
