/* SPDX-License-Identifier: Apache-2.0
 *
 * An importer that refuses every file, after |spoil_load| of the file that includes this.
 */
#pragma once

#include "pyflame_rt/plugin.h"

static void spoil_load(const pfrt_import_request* request);

static uint32_t probe(const void* data, uint64_t size) {
  (void)data, (void)size;
  return 0;
}
static pfrt_code load(const pfrt_import_request* request, const pfrt_sink* sink) {
  static const char kText[] = "this importer loads nothing";
  spoil_load(request);
  return sink->fail(sink, PFRT_CODE_UNSUPPORTED_FORMAT, PFRT_NO_INDEX,
                    (pfrt_string){kText, sizeof kText - 1});
}

static const pfrt_string kExtensions[] = {{"bad", 3}};
static const pfrt_importer_table kTable = {
    .struct_size = sizeof(pfrt_importer_table),
    .abi = PFRT_ABI_VERSION,
    .extensions = kExtensions,
    .extension_count = 1,
    .probe = probe,
    .load = load,
};

PFRT_EXPORT pfrt_code pfrt_plugin_query(const pfrt_host_info* host, pfrt_plugin_desc* out_desc) {
  (void)host;
  out_desc->abi = PFRT_ABI_VERSION;
  out_desc->abi_major = PFRT_ABI_MAJOR;
  out_desc->min_minor = 0;
  out_desc->max_minor = PFRT_ABI_MINOR;
  out_desc->kind = PFRT_PLUGIN_IMPORT;
#if defined(PFRT_SANITIZE_ADDRESS)
  out_desc->sanitizer = PFRT_SANITIZER_ADDRESS;
#elif defined(PFRT_SANITIZE_THREAD)
  out_desc->sanitizer = PFRT_SANITIZER_THREAD;
#endif
  out_desc->name = (pfrt_string){"BAD", 3};
  out_desc->version = (pfrt_string){"9.9", 3};
  out_desc->table = &kTable;
  return PFRT_CODE_OK;
}
