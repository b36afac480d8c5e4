/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes a tensor over its own memory, with its own release function, and never gives it back.
 */
#include "test/plugins/bad/importer.h"

static float memory[4];
static void release_memory(void* user, void* data) { (void)user, (void)data; }

static void spoil_load(const pfrt_import_request* request) {
  static const int64_t kDims[] = {4};
  const pfrt_tensor tensor = {
      .struct_size = sizeof tensor,
      .dtype = PFRT_DTYPE_FLOAT32,
      .rank = 1,
      .data = memory,
      .bytes = sizeof memory,
      .dims = kDims,
  };
  pfrt_value* value = NULL;
  pfrt_status* status = request->api->value->wrap_tensor(&tensor, release_memory, NULL, &value);
  if (status) request->api->status->release(status);
}
