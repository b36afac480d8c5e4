/* SPDX-License-Identifier: Apache-2.0 */
#define SPOIL .writes_strings = 1
#include "test/plugins/bad/planted_op.h"
