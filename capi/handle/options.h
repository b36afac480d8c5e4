// SPDX-License-Identifier: Apache-2.0
//
// Members of an options handle.
#pragma once

#include "capi/handle/counted.h"
#include "core/options/options.h"
#include "pyflame_rt/pyflame_rt.h"

struct pfrt_options : pfrt::capi::Counted {
  explicit pfrt_options(pfrt_options_kind kind) : options(kind) {}
  pfrt::Options options;
};
