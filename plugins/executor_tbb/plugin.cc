// SPDX-License-Identifier: Apache-2.0
//
// libpyflamert_executor_tbb.so: loops of runs on oneTBB's threads, in the arena of the thread that
// runs. Asynchronous runs begin on threads of the runtime's: a task of oneTBB's would wait for ever
// where a host waits for it on all threads that there are.
#include <pyflame_rt/plugin.h>

#include "plugins/executor_tbb/loop.h"

namespace {

pfrt_code create(const pfrt_sink*, pfrt_executor* out) {
  // How many threads there are differs from arena to arena: loop sees.
  out->loop = [](void*, uint32_t workers, uint64_t n, pfrt::tbb_executor::Body body, void* arg) {
    pfrt::tbb_executor::loop(workers, n, body, arg);
  };
  return PFRT_CODE_OK;
}

constexpr pfrt_executor_table kTable = {sizeof(pfrt_executor_table), PFRT_ABI_VERSION, create};

template <size_t N>
constexpr pfrt_string text(const char (&words)[N]) {
  return {words, N - 1};
}

}  // namespace

extern "C" PFRT_EXPORT pfrt_code pfrt_plugin_query(const pfrt_host_info* host,
                                                   pfrt_plugin_desc* out) {
  out->abi = PFRT_ABI_VERSION;
  out->abi_major = PFRT_ABI_MAJOR;
  out->min_minor = 0;
  out->max_minor = PFRT_ABI_MINOR;
  out->kind = PFRT_PLUGIN_EXECUTOR;
#if defined(PFRT_SANITIZE_ADDRESS)
  out->sanitizer = PFRT_SANITIZER_ADDRESS;
#elif defined(PFRT_SANITIZE_THREAD)
  out->sanitizer = PFRT_SANITIZER_THREAD;
#endif
  out->name = text("oneTBB");
  out->version = text(PFRT_VERSION_TEXT);
  out->table = &kTable;
  return host->abi_major == PFRT_ABI_MAJOR ? PFRT_CODE_OK : PFRT_CODE_PLUGIN;
}
