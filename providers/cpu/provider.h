// SPDX-License-Identifier: Apache-2.0
//
// The CPU provider behind the plug-in ABI: CPUExecutionProvider, device "cpu". Thread-safe as
// plugin.h says.
#pragma once

#include "pyflame_rt/plugin.h"

namespace pfrt::cpu {

inline constexpr pfrt_provider_features kFeatures =
    PFRT_PROVIDER_SUPPORTS | PFRT_PROVIDER_CONSTANTS | PFRT_PROVIDER_KERNELS |
    PFRT_PROVIDER_DEFERRED | PFRT_PROVIDER_FINGERPRINT | PFRT_PROVIDER_ASK | PFRT_PROVIDER_RANGES |
    PFRT_PROVIDER_BATCH;
const pfrt_provider_table& provider_table();

}  // namespace pfrt::cpu
