// SPDX-License-Identifier: Apache-2.0
//
// libpyflamert_provider_null.so: the null provider's table and what it was built with.
#include "providers/kit/describe.h"
#include "providers/null/null.h"

extern "C" PFRT_EXPORT pfrt_code pfrt_plugin_query(const pfrt_host_info* host,
                                                   pfrt_plugin_desc* out_desc) {
  return pfrt::describe_plugin(host, PFRT_PLUGIN_PROVIDER, "NullExecutionProvider",
                               pfrt::null_provider::kFeatures,
                               &pfrt::null_provider::provider_table(), out_desc);
}
