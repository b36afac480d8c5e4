/* SPDX-License-Identifier: Apache-2.0 */
#define SERVICE_NAME "OddDefault"
#define DEFAULT_COLOUR "blue"
#include "test/plugins/bad/service.h"
