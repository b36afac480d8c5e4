/* SPDX-License-Identifier: Apache-2.0 */
#define SERVICE_NAME "Idle"
#include "test/plugins/bad/service.h"
