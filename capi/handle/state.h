// SPDX-License-Identifier: Apache-2.0
//
// Members of a state's handle.
#pragma once

#include <memory>

#include "capi/handle/counted.h"
#include "core/session/state.h"
#include "pyflame_rt/pyflame_rt.h"

namespace pfrt {
class Environment;
}

struct pfrt_state : pfrt::capi::Counted {
  std::shared_ptr<pfrt::Environment> env;
  std::shared_ptr<pfrt::State> state;
};
