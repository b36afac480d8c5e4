// SPDX-License-Identifier: Apache-2.0
//
// libpyflamert_provider_cpu.so: the CPU provider's table and what it was built with.
#include "providers/cpu/provider.h"
#include "providers/kit/describe.h"

extern "C" PFRT_EXPORT pfrt_code pfrt_plugin_query(const pfrt_host_info* host,
                                                   pfrt_plugin_desc* out_desc) {
  return pfrt::describe_plugin(host, PFRT_PLUGIN_PROVIDER, "CPUExecutionProvider",
                               pfrt::cpu::kFeatures, &pfrt::cpu::provider_table(), out_desc);
}
