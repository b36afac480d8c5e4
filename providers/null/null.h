// SPDX-License-Identifier: Apache-2.0
//
// The null provider behind the plug-in ABI: NullExecutionProvider, device "null". It opens, refuses
// every node and says why; copy this folder and plugins/provider_null to start a provider.
// Thread-safe as plugin.h says.
#pragma once

#include "pyflame_rt/plugin.h"

namespace pfrt::null_provider {

// The optional functions a provider has: a bit for each that is not null in the table.
inline constexpr pfrt_provider_features kFeatures = 0;
const pfrt_provider_table& provider_table();

}  // namespace pfrt::null_provider
