// SPDX-License-Identifier: Apache-2.0
#include "core/session/choose_providers.h"

#include <algorithm>

#include "core/base/provider_name.h"
#include "core/session/provider_options.h"

namespace pfrt {
namespace {

// The provider names that the options ask for. |device| is short for a list that ends in the CPU.
Result<std::vector<std::string>> wanted_providers(const Options& o) {
  std::vector<std::string> named = o.get_strings("providers");
  const std::string& device = o.get_string("device");
  std::vector<std::string> of_device;
  if (device == "null") of_device.push_back("NullExecutionProvider");
  of_device.push_back("CPUExecutionProvider");
  if (named.empty()) return of_device;
  if (o.is_set("device") && !names_provider(named.front(), of_device.front()))
    return error(Code::kINVALID_ARGUMENT, "creating a session: device '", device, "' means ",
                 of_device.front(), " first, but providers begins with ", named.front(),
                 "; give one of the two");
  return named;
}

Status not_listed(std::string_view key, std::string_view provider,
                  const std::vector<ProviderSource>& sources) {
  std::vector<std::string> names;
  std::string listed;
  for (const ProviderSource& s : sources) {
    names.insert(names.end(), {s.name, provider_word(s.name)});
    listed += message(listed.empty() ? "" : ", ", s.name);
  }
  const std::string near = nearest_name(provider, names);
  return error(Code::kINVALID_ARGUMENT, "creating a session: option '", key,
               "' is for a provider that the session does not list; it lists ", listed,
               near.empty() ? "" : "; did you mean '", near, near.empty() ? "" : "'?");
}

// Hands "provider.<name>.<key>" to the provider that the name stands for. A provider with a schema
// has keys, types and choices checked here; another one says at open what it does not know.
Status give_options(const Options& o, std::vector<ProviderSource>& sources) {
  for (Options::ForProvider& given : o.for_providers()) {
    const size_t at = find_provider(
        sources, given.word, [](const ProviderSource& s) -> auto& { return s.name; });
    const std::string key = message("provider.", given.word, ".", given.key);
    if (at == sources.size()) return not_listed(key, given.word, sources);
    ProviderSource* const it = &sources[at];
    if (std::ranges::find(it->options, given.key, &std::pair<std::string, std::string>::first) !=
        it->options.end())
      return error(Code::kINVALID_ARGUMENT, "creating a session: option '", given.key, "' of ",
                   it->name, " is given twice, by different names of the provider");
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
    for (const ProviderSource& before : sources)
      if (before.name == found->name)
        return error(Code::kINVALID_ARGUMENT, "creating a session: provider ", before.name,
                     " is listed twice");
    sources.push_back(found.take());
  }
  PFRT_TRY(give_options(options, sources));
  return sources;
}

}  // namespace pfrt
