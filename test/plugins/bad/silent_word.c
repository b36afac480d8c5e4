/* SPDX-License-Identifier: Apache-2.0 */
#define DEVICES "none,moon"
#define SPOIL .silent_word = 1
#include "test/plugins/bad/add_provider.h"
