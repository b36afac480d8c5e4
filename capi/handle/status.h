// SPDX-License-Identifier: Apache-2.0
//
// Members of a status handle.
#pragma once

#include <memory>
#include <vector>

#include "capi/handle/alive.h"
#include "core/base/status.h"
#include "pyflame_rt/pyflame_rt.h"

struct pfrt_status {
  pfrt::Status status;
  std::vector<std::unique_ptr<pfrt_status>> children;
  bool immortal = false;
  [[no_unique_address]] pfrt::capi::Alive alive;
};
