// SPDX-License-Identifier: Apache-2.0
//
// Members of an environment's handle.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "capi/handle/counted.h"
#include "core/environment/environment.h"
#include "pyflame_rt/pyflame_rt.h"

namespace pfrt {
struct Plugin;
}

namespace pfrt::capi {
class LoadedPlugins;
}

struct pfrt_env : pfrt::capi::Counted {
  std::shared_ptr<pfrt::Environment> state;
  pfrt::capi::LoadedPlugins* loaded = nullptr;  // the state's
  std::shared_ptr<pfrt::Executor> executor;     // of the option of that name; null: the pool
  // Guards storage of listings. Recursive, since making one may call the client's log function,
  // which may ask for one itself.
  std::recursive_mutex mutex;
  std::vector<std::shared_ptr<const pfrt::Plugin>> plugins;
  struct KernelList {
    std::string provider;
    std::shared_ptr<pfrt::Provider> opened;
    std::vector<pfrt_kernel_info> rows;
  };
  std::vector<std::unique_ptr<KernelList>> kernels;
  struct OptionList {
    std::string of;                // name of a provider, or "import." and that of an importer
    std::deque<std::string> keys;  // with prefix; rows point here
    std::vector<pfrt_option_info> rows;
  };
  std::vector<std::unique_ptr<OptionList>> options;
};
