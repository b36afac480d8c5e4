// SPDX-License-Identifier: Apache-2.0
#define SPOIL
#include "test/plugins/bad/queue_device.h"
