// SPDX-License-Identifier: Apache-2.0
//
// The wafer-scale provider behind the plug-in ABI: WSEExecutionProvider, devices "wse", "wse2" and
// "wse3", all simulated. ../README.md says what it computes and counts. Thread-safe as plugin.h
// says.
#pragma once

#include "pyflame_rt/plugin.h"

namespace pfrt::wse {

inline constexpr pfrt_provider_features kFeatures =
    PFRT_PROVIDER_SIMULATED | PFRT_PROVIDER_NO_FOLD | PFRT_PROVIDER_KERNELS | PFRT_PROVIDER_MEMORY |
    PFRT_PROVIDER_OPTIONS | PFRT_PROVIDER_REPORT | PFRT_PROVIDER_FINGERPRINT | PFRT_PROVIDER_ASK;
const pfrt_provider_table& provider_table();

}  // namespace pfrt::wse
