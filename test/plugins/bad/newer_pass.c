/* SPDX-License-Identifier: Apache-2.0
 *
 * A plug-in of a pass that does nothing, in a struct of a later minor with a member that is set.
 */
#include "pyflame_rt/custom.h"

static pfrt_code rewrite(void* user, pfrt_pass_call* call) {
  (void)user, (void)call;
  return PFRT_CODE_OK;
}

static const struct newer {
  pfrt_custom_pass pass;
  uint64_t more[3];
} kNewer = {
    {
        .struct_size = sizeof(struct newer),
        .abi = PFRT_ABI_VERSION,
        .name = {"NewerPass", 9},
        .run = rewrite,
    },
    {0, 0, 1},
};

PFRT_EXPORT pfrt_code pfrt_plugin_query(const pfrt_host_info* host, pfrt_plugin_desc* out_desc) {
  static const pfrt_custom_pass* const kPasses[] = {&kNewer.pass};
  static const pfrt_pass_table kTable = {sizeof kTable, PFRT_ABI_VERSION, kPasses, 1};
  (void)host;
  out_desc->abi = PFRT_ABI_VERSION;
  out_desc->abi_major = PFRT_ABI_MAJOR;
  out_desc->max_minor = PFRT_ABI_MINOR;
  out_desc->kind = PFRT_PLUGIN_PASS;
#if defined(PFRT_SANITIZE_ADDRESS)
  out_desc->sanitizer = PFRT_SANITIZER_ADDRESS;
#elif defined(PFRT_SANITIZE_THREAD)
  out_desc->sanitizer = PFRT_SANITIZER_THREAD;
#endif
  out_desc->name = (pfrt_string){"Newer", 5};
  out_desc->version = (pfrt_string){"9.9", 3};
  out_desc->table = &kTable;
  return PFRT_CODE_OK;
}
