// SPDX-License-Identifier: Apache-2.0
//
// libpyflamert_provider_wse.so: the wafer-scale provider's table and what it was built with.
#include "providers/kit/describe.h"
#include "providers/wse/program/provider.h"

extern "C" PFRT_EXPORT pfrt_code pfrt_plugin_query(const pfrt_host_info* host,
                                                   pfrt_plugin_desc* out_desc) {
  return pfrt::describe_plugin(host, PFRT_PLUGIN_PROVIDER, "WSEExecutionProvider",
                               pfrt::wse::kFeatures, &pfrt::wse::provider_table(), out_desc);
}
