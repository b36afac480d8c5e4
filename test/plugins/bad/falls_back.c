/* SPDX-License-Identifier: Apache-2.0 */
#define SERVICE_NAME "FallsBack"
#define SECOND_FRACTION 0.25
#include "test/plugins/bad/service.h"
