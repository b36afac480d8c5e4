/* SPDX-License-Identifier: Apache-2.0 */
#define SERVICE_NAME "AnswersAll"
#define UNKNOWN_VERB PFRT_CODE_OK
#include "test/plugins/bad/service.h"
