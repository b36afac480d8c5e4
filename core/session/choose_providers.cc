// SPDX-License-Identifier: Apache-2.0
#include "core/session/choose_providers.h"

#include <algorithm>

#include "core/session/provider_options.h"

namespace pfrt {
namespace {

// The provider names that the options ask for. |device| is short for a list that ends in the CPU.
Result<std::vector<std::string>> wanted_providers(const Options& o) {
  const std::vector<std::string> named = o.get_strings("providers");
  const std::string& device = o.get_string("device");
  std::vector<std::string> of_device;
  if (device == "null") of_device.push_back("NullExecutionProvider");
  of_device.push_back("CPUExecutionProvider");
  if (named.empty()) return of_device;
  if (o.is_set("device") && named.front() != of_device.front())
    return error(Code::kINVALID_ARGUMENT, "creating a session: device '", device, "' means ",
                 of_device.front(), " first, but providers begins with ", named.front(),
                 "; give one of the two");
  for (size_t i = 0; i < named.size(); ++i)
    if (std::find(named.begin(), named.begin() + static_cast<std::ptrdiff_t>(i), named[i]) !=
        named.begin() + static_cast<std::ptrdiff_t>(i))
      return error(Code::kINVALID_ARGUMENT, "creating a session: provider ", named[i],
                   " is listed twice");
  return named;
}

// Hands "provider.<word>.<key>" to the provider of that word. A provider with a schema has keys,
// types and choices checked here; another one says at open what it does not know.
Status give_options(const Options& o, std::vector<ProviderSource>& sources) {
  for (Options::ForProvider& given : o.for_providers()) {
    const auto it = std::find_if(sources.begin(), sources.end(), [&](const ProviderSource& s) {
      return provider_word(s.name) == given.word;
    });
    const std::string key = message("provider.", given.word, ".", given.key);
    if (it == sources.end())
      return error(Code::kINVALID_ARGUMENT, "creating a session: option '", key,
                   "' is for a provider that the session does not list");
    if (it->features & PFRT_PROVIDER_OPTIONS) {
      PFRT_ASSIGN(const std::vector<pfrt_option_info> schema,
                  provider_options(*it->table, it->name));
      PFRT_TRY(check_option(schema, key, given.key, given.value));
    }
    it->options.emplace_back(std::move(given.key), std::move(given.value));
  }
  return {};
}

}  // namespace

Result<std::vector<ProviderSource>> choose_providers(const Options& options,
                                                     const FindProvider& find) {
  PFRT_ASSIGN(const std::vector<std::string> names, wanted_providers(options));
  std::vector<ProviderSource> sources;
  for (const std::string& name : names) {
    auto found = find(name);
    if (!found.ok()) return found.take_status().prepend("creating a session");
    sources.push_back(found.take());
  }
  PFRT_TRY(give_options(options, sources));
  return sources;
}

}  // namespace pfrt
