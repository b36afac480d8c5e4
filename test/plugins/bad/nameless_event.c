/* SPDX-License-Identifier: Apache-2.0 */
#define SERVICE_NAME "NamelessEvent"
#define EVENT_NAME ""
#include "test/plugins/bad/service.h"
