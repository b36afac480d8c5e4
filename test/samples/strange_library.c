/* SPDX-License-Identifier: Apache-2.0
 *
 * Libraries that samples must not go on with: one of another major version and, with SHORT_TABLES,
 * one whose tables end before the functions that are called. */
#include <pyflame_rt/pyflame_rt.h>

PFRT_EXPORT const pfrt_api* pfrt_get_api(uint32_t abi_version, pfrt_abi_info* out_info) {
  static const char kReason[] = "this library is of major version 7";
  static const pfrt_status_api kStatus = {.struct_size = 16};
  static const pfrt_api kApi = {
      .struct_size = sizeof kApi, .abi = PFRT_ABI_VERSION, .status = &kStatus};
  (void)abi_version;
#ifdef SHORT_TABLES
  (void)out_info;
  (void)kReason;
  return &kApi;
#else
  (void)kApi;
  out_info->message.data = kReason;
  out_info->message.size = sizeof kReason - 1;
  return NULL;
#endif
}
