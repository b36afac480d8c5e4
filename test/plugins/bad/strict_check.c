/* SPDX-License-Identifier: Apache-2.0 */
#define SERVICE_NAME "StrictCheck"
#define CHECK_CODE PFRT_CODE_INVALID_ARGUMENT
#include "test/plugins/bad/service.h"
