// SPDX-License-Identifier: Apache-2.0
//
// Which providers a session's options ask for, and with which options of their own. Thread-safe.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "core/plan/provider.h"
#include "core/session/options.h"

namespace pfrt {

using FindProvider = std::function<Result<ProviderSource>(std::string_view name)>;

// In the order of preference; what opening each takes.
Result<std::vector<ProviderSource>> choose_providers(const Options& options,
                                                     const FindProvider& find);

}  // namespace pfrt
