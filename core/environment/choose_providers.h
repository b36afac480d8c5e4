// SPDX-License-Identifier: Apache-2.0
//
// Which providers a session's options ask for, or who is asked something without a session, and
// with which options of their own. Thread-safe.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/options/options.h"
#include "core/provider/provider.h"

namespace pfrt {

struct FindProvider {
  // By name or word (core/base/provider_name.h).
  std::function<Result<ProviderSource>(std::string_view name)> named;
  // All that are usable.
  std::function<std::vector<ProviderSource>()> all;
};

// The words of the devices that a provider opens.
std::vector<std::string> device_words(const pfrt_provider_table& table);

// In the order of preference; what opening each takes.
Result<std::vector<ProviderSource>> choose_providers(const Options& options,
                                                     const FindProvider& find);

// The provider that |name| stands for, to be asked something; |options| are of kind ASK.
Result<ProviderSource> choose_provider(std::string_view name, const Options& options,
                                       const FindProvider& find);

}  // namespace pfrt
