// SPDX-License-Identifier: Apache-2.0
//
// Members of an options handle.
#pragma once

#include <memory>

#include "capi/handle/counted.h"
#include "core/options/options.h"
#include "pyflame_rt/pyflame_rt.h"

namespace pfrt {
class State;
}

namespace pfrt::capi {
// Function that sees a run's extra outputs; |fn| null = none.
struct ClientObserver {
  pfrt_observe_fn fn = nullptr;
  void* user = nullptr;
};
}  // namespace pfrt::capi

struct pfrt_options : pfrt::capi::Counted {
  explicit pfrt_options(pfrt_options_kind kind) : options(kind) {}
  pfrt::Options options;
  std::shared_ptr<pfrt::State> state;   // of runs; may be null
  pfrt::capi::ClientObserver observer;  // of runs
};
