// SPDX-License-Identifier: Apache-2.0
//
// Chooses the providers that a session's options ask for, or the one to be asked something without
// a session, each with its own options. Thread-safe.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/options/options.h"
#include "core/provider/provider.h"

namespace pfrt {

struct FindProvider {
  // Finds one by its name or a word for it (core/base/provider_name.h).
  std::function<Result<ProviderSource>(std::string_view name)> named;
  // All usable providers.
  std::function<std::vector<ProviderSource>()> all;
};

// The words of the devices that a provider opens.
std::vector<std::string> device_words(const pfrt_provider_table& table);

// The providers to open, with their options, in the order of preference.
Result<std::vector<ProviderSource>> choose_providers(const Options& options,
                                                     const FindProvider& find);

// The provider that |name| stands for, to be opened and asked something; |options| are of kind ASK.
Result<ProviderSource> choose_provider(std::string_view name, const Options& options,
                                       const FindProvider& find);

}  // namespace pfrt
