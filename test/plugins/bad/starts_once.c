/* SPDX-License-Identifier: Apache-2.0
 *
 * A service that does nothing, and cannot be started a second time.
 */
#include "pyflame_rt/plugin.h"

static pfrt_code start(const pfrt_service_request* request, const pfrt_sink* sink,
                       pfrt_service_instance** out) {
  static const char kText[] = "it takes no options, and starts once";
  static int started = 0;
  *out = NULL;
  if (request->option_count || started)
    return sink->fail(sink, PFRT_CODE_INVALID_ARGUMENT, PFRT_NO_INDEX,
                      (pfrt_string){kText, sizeof kText - 1});
  started = 1;
  *out = (pfrt_service_instance*)(void*)&started;
  return PFRT_CODE_OK;
}
static void stop(pfrt_service_instance* service) { (void)service; }

static const pfrt_service_table kTable = {
    .struct_size = sizeof(pfrt_service_table),
    .abi = PFRT_ABI_VERSION,
    .start = start,
    .stop = stop,
};

PFRT_EXPORT pfrt_code pfrt_plugin_query(const pfrt_host_info* host, pfrt_plugin_desc* out_desc) {
  (void)host;
  out_desc->abi = PFRT_ABI_VERSION;
  out_desc->abi_major = PFRT_ABI_MAJOR;
  out_desc->max_minor = PFRT_ABI_MINOR;
  out_desc->kind = PFRT_PLUGIN_SERVICE;
#if defined(PFRT_SANITIZE_ADDRESS)
  out_desc->sanitizer = PFRT_SANITIZER_ADDRESS;
#elif defined(PFRT_SANITIZE_THREAD)
  out_desc->sanitizer = PFRT_SANITIZER_THREAD;
#endif
  out_desc->name = (pfrt_string){"StartsOnce", 10};
  out_desc->version = (pfrt_string){"9.9", 3};
  out_desc->table = &kTable;
  return PFRT_CODE_OK;
}
