// SPDX-License-Identifier: Apache-2.0
#define SPOIL .goes_on = true
#include "test/plugins/bad/queue_device.h"
