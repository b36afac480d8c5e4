/* SPDX-License-Identifier: Apache-2.0 */
#define SPOIL .newer_member = 1
#include "test/plugins/bad/planted_op.h"
