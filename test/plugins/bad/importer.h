/* SPDX-License-Identifier: Apache-2.0
 *
 * An importer that refuses every file, after |spoil_load| of the file that includes this, which may
 * also #define SPOIL .takes_junk = 1
 */
#pragma once

#include <string.h>

#include "pyflame_rt/plugin.h"

#ifndef SPOIL
#define SPOIL 0
#endif
struct spoils {
  int beyond_100;    /* gives probe an answer beyond 100 */
  int takes_junk;    /* takes junk for a model without nodes */
  int saves_nothing; /* saves only the name */
};
static const struct spoils spoil = {SPOIL};

static void spoil_load(const pfrt_import_request* request);

static uint32_t probe(const void* data, uint64_t size) {
  if (spoil.saves_nothing) return size == 3 && memcmp(data, "BAD", 3) == 0 ? 100 : 0;
  return spoil.beyond_100 ? 101 : 0;
}
static pfrt_code load(const pfrt_import_request* request, const pfrt_sink* sink) {
  static const char kText[] = "this importer loads nothing";
  spoil_load(request);
  if (spoil.takes_junk) return PFRT_CODE_OK;
  if (spoil.saves_nothing && probe(request->data, request->size)) return PFRT_CODE_OK;
  return sink->fail(sink, PFRT_CODE_UNSUPPORTED_FORMAT, PFRT_NO_INDEX,
                    (pfrt_string){kText, sizeof kText - 1});
}

static pfrt_code save(const pfrt_export_request* request, const pfrt_sink* sink) {
  return request->write(request, 0, "BAD", 3, sink);
}

static const pfrt_string kExtensions[] = {{"bad", 3}};
static const pfrt_importer_table kTable = {
    .struct_size = sizeof(pfrt_importer_table),
    .abi = PFRT_ABI_VERSION,
    .extensions = kExtensions,
    .extension_count = 1,
    .probe = probe,
    .load = load,
    .save = save,
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
  if (spoil.saves_nothing) out_desc->features = PFRT_IMPORTER_SAVE;
  out_desc->name = (pfrt_string){"BAD", 3};
  out_desc->version = (pfrt_string){"9.9", 3};
  out_desc->table = &kTable;
  return PFRT_CODE_OK;
}
