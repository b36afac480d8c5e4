/* SPDX-License-Identifier: Apache-2.0
 *
 * A service that says it has an address, and has no function for it.
 */
#include "pyflame_rt/plugin.h"

static pfrt_code start(const pfrt_service_request* request, const pfrt_sink* sink,
                       pfrt_service_instance** out) {
  (void)request, (void)sink;
  *out = NULL;
  return PFRT_CODE_UNSUPPORTED;
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
  out_desc->features = PFRT_SERVICE_ADDRESS;
  out_desc->name = (pfrt_string){"NoAddress", 9};
  out_desc->version = (pfrt_string){"9.9", 3};
  out_desc->table = &kTable;
  return PFRT_CODE_OK;
}
