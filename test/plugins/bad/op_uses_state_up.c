/* SPDX-License-Identifier: Apache-2.0 */
#define SPOIL .uses_state_up = 1
#include "test/plugins/bad/planted_op.h"
