// SPDX-License-Identifier: Apache-2.0
//
// Members of a report's handle.
#pragma once

#include <string>
#include <vector>

#include "capi/handle/alive.h"
#include "core/exec/run/run_types.h"
#include "pyflame_rt/pyflame_rt.h"

struct pfrt_report {
  [[no_unique_address]] pfrt::capi::Alive alive;
  std::vector<pfrt::StepReport> rows;
  std::vector<pfrt::CounterReport> counters;
  std::vector<std::string> notes;
};
