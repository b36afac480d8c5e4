// SPDX-License-Identifier: Apache-2.0
//
// libpyflamert_executor_tbb.so: loops of runs on oneTBB's threads, in the arena of the thread that
// runs. Asynchronous runs begin on threads of the runtime's: a task of oneTBB's would wait for ever
// where a host waits for it on all threads that there are.
#include <pyflame_rt/plugin.h>

#include "plugins/executor_tbb/loop.h"
#include "providers/kit/describe.h"

namespace {

pfrt_code create(const pfrt_sink*, pfrt_executor* out) {
  // Arenas differ in their numbers of threads, which loop looks up.
  out->loop = [](void*, uint32_t workers, uint64_t n, pfrt::tbb_executor::Body body, void* arg) {
    pfrt::tbb_executor::loop(workers, n, body, arg);
  };
  return PFRT_CODE_OK;
}

constexpr pfrt_executor_table kTable = {sizeof(pfrt_executor_table), PFRT_ABI_VERSION, create};

}  // namespace

extern "C" PFRT_EXPORT pfrt_code pfrt_plugin_query(const pfrt_host_info* host,
                                                   pfrt_plugin_desc* out_desc) {
  return pfrt::describe_plugin(host, PFRT_PLUGIN_EXECUTOR, "oneTBB", 0, &kTable, out_desc);
}
