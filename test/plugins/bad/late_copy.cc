// SPDX-License-Identifier: Apache-2.0
#define SPOIL .late_copy = true
#include "test/plugins/bad/queue_device.h"
