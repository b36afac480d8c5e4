/* SPDX-License-Identifier: Apache-2.0
 *
 * A description of a plug-in of kind ops that the host accepts, but for its table.
 */
#pragma once

#include "pyflame_rt/custom.h"

static pfrt_code describe(pfrt_plugin_desc* out, const pfrt_ops_table* table) {
  out->abi = PFRT_ABI_VERSION;
  out->abi_major = PFRT_ABI_MAJOR;
  out->max_minor = PFRT_ABI_MINOR;
  out->kind = PFRT_PLUGIN_OPS;
#if defined(PFRT_SANITIZE_ADDRESS)
  out->sanitizer = PFRT_SANITIZER_ADDRESS;
#elif defined(PFRT_SANITIZE_THREAD)
  out->sanitizer = PFRT_SANITIZER_THREAD;
#endif
  out->name = (pfrt_string){"Test", 4};
  out->version = (pfrt_string){"1", 1};
  out->table = table;
  return PFRT_CODE_OK;
}
