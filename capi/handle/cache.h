// SPDX-License-Identifier: Apache-2.0
//
// Members of a cache's handle.
#pragma once

#include <memory>

#include "capi/handle/counted.h"
#include "core/session/compiled_cache.h"
#include "pyflame_rt/pyflame_rt.h"

namespace pfrt {
class Environment;
}

struct pfrt_cache : pfrt::capi::Counted {
  std::shared_ptr<pfrt::Environment> env;
  std::shared_ptr<pfrt::CompiledCache> cache;
};
