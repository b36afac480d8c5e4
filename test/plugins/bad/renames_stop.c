/* SPDX-License-Identifier: Apache-2.0 */
#define SERVICE_NAME "RenamesStop"
#define WHEN_STOPPED(code) PFRT_CODE_INTERNAL
#include "test/plugins/bad/service.h"
