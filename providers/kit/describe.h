// SPDX-License-Identifier: Apache-2.0
//
// The description by which a plug-in of this project answers the host's query. Pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "pyflame_rt/plugin.h"

namespace pfrt {

#if defined(PFRT_SANITIZE_ADDRESS)
inline constexpr pfrt_sanitizer kBuiltWith = PFRT_SANITIZER_ADDRESS;
#elif defined(PFRT_SANITIZE_THREAD)
inline constexpr pfrt_sanitizer kBuiltWith = PFRT_SANITIZER_THREAD;
#else
inline constexpr pfrt_sanitizer kBuiltWith = PFRT_SANITIZER_NONE;
#endif

// Fills |out| for a plug-in called |name|, whose |table| is of |kind|. The description is filled in
// even where the host is of another ABI, so that it can say what is wrong.
inline pfrt_code describe_plugin(const pfrt_host_info* host, pfrt_plugin_kind kind,
                                 std::string_view name, uint64_t features, const void* table,
                                 pfrt_plugin_desc* out) {
  constexpr std::string_view kVersion = PFRT_VERSION_TEXT;
  if (host == nullptr || out == nullptr) return PFRT_CODE_PLUGIN;
  out->abi = PFRT_ABI_VERSION;
  out->abi_major = PFRT_ABI_MAJOR;
  out->min_minor = 0;
  out->max_minor = PFRT_ABI_MINOR;
  out->kind = kind;
  out->sanitizer = kBuiltWith;
  out->features = features;
  out->name = {name.data(), name.size()};
  out->version = {kVersion.data(), kVersion.size()};
  out->table = table;
  const bool common = host->abi_major == PFRT_ABI_MAJOR && host->min_minor <= PFRT_ABI_MINOR;
  return common ? PFRT_CODE_OK : PFRT_CODE_PLUGIN;
}

}  // namespace pfrt
