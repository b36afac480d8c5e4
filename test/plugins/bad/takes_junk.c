/* SPDX-License-Identifier: Apache-2.0 */
#define SPOIL .takes_junk = 1
#include "test/plugins/bad/importer.h"

static void spoil_load(const pfrt_import_request* request) { (void)request; }
