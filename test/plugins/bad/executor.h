/* SPDX-License-Identifier: Apache-2.0
 *
 * An executor without threads, of which each plug-in here spoils one thing: |loop| and |create| are
 * its own.
 */
#pragma once

#include "pyflame_rt/plugin.h"

static pfrt_code create(const pfrt_sink* sink, pfrt_executor* out);

static const pfrt_executor_table kTable = {
    .struct_size = sizeof(pfrt_executor_table),
    .abi = PFRT_ABI_VERSION,
    .create = create,
};

PFRT_EXPORT pfrt_code pfrt_plugin_query(const pfrt_host_info* host, pfrt_plugin_desc* out_desc) {
  (void)host;
  out_desc->abi = PFRT_ABI_VERSION;
  out_desc->abi_major = PFRT_ABI_MAJOR;
  out_desc->max_minor = PFRT_ABI_MINOR;
  out_desc->kind = PFRT_PLUGIN_EXECUTOR;
#if defined(PFRT_SANITIZE_ADDRESS)
  out_desc->sanitizer = PFRT_SANITIZER_ADDRESS;
#elif defined(PFRT_SANITIZE_THREAD)
  out_desc->sanitizer = PFRT_SANITIZER_THREAD;
#endif
  out_desc->name = (pfrt_string){"NoThreads", 9};
  out_desc->version = (pfrt_string){"9.9", 3};
  out_desc->table = &kTable;
  return PFRT_CODE_OK;
}
