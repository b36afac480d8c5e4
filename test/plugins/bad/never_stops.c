/* SPDX-License-Identifier: Apache-2.0 */
#define SPOIL .never_stops = 1
#include "test/plugins/bad/add_provider.h"
