// SPDX-License-Identifier: Apache-2.0
//
// libpyflamert_provider_wse.so: the wafer-scale provider's table and what it was built with.
#include "providers/wse/program/provider.h"

extern "C" PFRT_EXPORT pfrt_code pfrt_plugin_query(const pfrt_host_info* host,
                                                   pfrt_plugin_desc* out_desc) {
  constexpr pfrt_string kName = {"WSEExecutionProvider", sizeof "WSEExecutionProvider" - 1};
  constexpr pfrt_string kVersion = {"0.1.0", 5};
#if defined(PFRT_SANITIZE_ADDRESS)
  constexpr pfrt_sanitizer kSanitizer = PFRT_SANITIZER_ADDRESS;
#elif defined(PFRT_SANITIZE_THREAD)
  constexpr pfrt_sanitizer kSanitizer = PFRT_SANITIZER_THREAD;
#else
  constexpr pfrt_sanitizer kSanitizer = PFRT_SANITIZER_NONE;
#endif
  out_desc->abi = PFRT_ABI_VERSION;
  out_desc->abi_major = PFRT_ABI_MAJOR;
  out_desc->min_minor = 0;
  out_desc->max_minor = PFRT_ABI_MINOR;
  out_desc->kind = PFRT_PLUGIN_PROVIDER;
  out_desc->sanitizer = kSanitizer;
  out_desc->features = pfrt::wse::kFeatures;
  out_desc->name = kName;
  out_desc->version = kVersion;
  out_desc->table = &pfrt::wse::provider_table();
  // The description is filled in either way, so that the host can say what was wrong.
  const bool common = host->abi_major == PFRT_ABI_MAJOR && host->min_minor <= PFRT_ABI_MINOR;
  return common ? PFRT_CODE_OK : PFRT_CODE_PLUGIN;
}
