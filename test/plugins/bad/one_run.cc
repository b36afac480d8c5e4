// SPDX-License-Identifier: Apache-2.0
#define SPOIL .one_run = true
#include "test/plugins/bad/queue_device.h"
