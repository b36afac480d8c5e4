/* SPDX-License-Identifier: Apache-2.0 */
#define SPOIL .same_twice = 1
#include "test/plugins/bad/planted_op.h"
