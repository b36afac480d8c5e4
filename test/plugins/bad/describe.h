/* SPDX-License-Identifier: Apache-2.0
 *
 * A description and a provider table that the host accepts; each plug-in here spoils one thing of
 * them.
 */
#pragma once

#include "pyflame_rt/plugin.h"

static pfrt_code refuse_open(pfrt_string device, const pfrt_key_value* options, size_t count,
                             const pfrt_sink* sink, pfrt_provider** out) {
  static const char kText[] = "this provider only tests the loader";
  (void)device, (void)options, (void)count;
  *out = NULL;
  return sink->fail(sink, PFRT_CODE_UNSUPPORTED, PFRT_NO_INDEX,
                    (pfrt_string){kText, sizeof kText - 1});
}
static void close_nothing(pfrt_provider* provider) { (void)provider; }
static pfrt_code claim_nothing(pfrt_provider* provider, const pfrt_snapshot* snapshot,
                               const pfrt_claims* claims, const pfrt_sink* sink) {
  (void)provider, (void)snapshot, (void)claims, (void)sink;
  return PFRT_CODE_OK;
}
static pfrt_code compile_nothing(pfrt_provider* provider, const pfrt_region* regions,
                                 size_t region_size, size_t count, const pfrt_sink* sink,
                                 pfrt_executable** out_executables, size_t* out_region) {
  (void)provider, (void)regions, (void)region_size, (void)count, (void)sink;
  (void)out_executables, (void)out_region;
  return PFRT_CODE_UNSUPPORTED;
}
static void release_nothing(pfrt_executable* executable) { (void)executable; }
static pfrt_code specialise_nothing(pfrt_executable* executable, const pfrt_shapes* shapes,
                                    const pfrt_sink* sink, pfrt_program* out) {
  (void)executable, (void)shapes, (void)sink, (void)out;
  return PFRT_CODE_UNSUPPORTED;
}
static void release_no_program(pfrt_executable* executable, pfrt_program* program) {
  (void)executable, (void)program;
}

#ifndef DEVICES
#define DEVICES "none"
#endif
static pfrt_provider_table table = {
    .struct_size = sizeof(pfrt_provider_table),
    .abi = PFRT_ABI_VERSION,
    .devices = {DEVICES, sizeof DEVICES - 1},
    .open = refuse_open,
    .close = close_nothing,
    .claim = claim_nothing,
    .compile = compile_nothing,
    .release_executable = release_nothing,
    .specialise = specialise_nothing,
    .release_program = release_no_program,
};

static void describe(pfrt_plugin_desc* out) {
  static const char kName[] = "BadExecutionProvider";
  out->abi = PFRT_ABI_VERSION;
  out->abi_major = PFRT_ABI_MAJOR;
  out->min_minor = 0;
  out->max_minor = PFRT_ABI_MINOR;
  out->kind = PFRT_PLUGIN_PROVIDER;
#if defined(PFRT_SANITIZE_ADDRESS)
  out->sanitizer = PFRT_SANITIZER_ADDRESS;
#elif defined(PFRT_SANITIZE_THREAD)
  out->sanitizer = PFRT_SANITIZER_THREAD;
#else
  out->sanitizer = PFRT_SANITIZER_NONE;
#endif
  out->name = (pfrt_string){kName, sizeof kName - 1};
  out->version = (pfrt_string){"9.9", 3};
  out->table = &table;
}
