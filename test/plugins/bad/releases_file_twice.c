/* SPDX-License-Identifier: Apache-2.0
 *
 * Retains the model's file once and releases it twice.
 */
#include "test/plugins/bad/importer.h"

static void spoil_load(const pfrt_import_request* request) {
  request->file_retain(request->file);
  request->file_release(request->file, NULL);
  request->file_release(request->file, NULL);
}
