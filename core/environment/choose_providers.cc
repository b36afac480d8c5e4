// SPDX-License-Identifier: Apache-2.0
#include "core/environment/choose_providers.h"

#include <algorithm>

#include "core/base/provider_name.h"
#include "core/options/provider_options.h"

namespace pfrt {
namespace {

constexpr std::string_view kCpu = "CPUExecutionProvider";

bool opens(const ProviderSource& source, std::string_view device) {
  return std::ranges::count(device_words(*source.table), device) != 0;
}

// The provider that opens |device|; one of that name is tried before all are loaded.
Result<ProviderSource> provider_of(std::string_view device, const FindProvider& find) {
  if (auto named = find.named(device); named.ok() && opens(*named, device)) return named;
  std::string listed;
  std::vector<std::string> words;
  for (ProviderSource& source : find.all()) {
    if (opens(source, device)) return std::move(source);
    for (std::string& word : device_words(*source.table)) {
      listed += message(listed.empty() ? "" : ", ", word, " (", source.name, ")");
      words.push_back(std::move(word));
    }
  }
  const std::string near = nearest_name(device, words);
  return error(Code::kNOT_FOUND, "creating a session: no provider opens device '", device,
               "'; devices are ", listed.empty() ? "none" : listed,
               near.empty() ? "" : "; did you mean '", near, near.empty() ? "" : "'?");
}

// The provider names that the options ask for.
Result<std::vector<std::string>> wanted_providers(const Options& o, const FindProvider& find) {
  std::vector<std::string> named = o.get(session_option::kProviders);
  std::string first(kCpu);
  if (o.is_set(session_option::kDevice)) {
    const std::string device = o.get(session_option::kDevice);
    PFRT_ASSIGN(const ProviderSource source, provider_of(device, find));
    first = source.name;
    if (!named.empty() && !names_provider(named.front(), first))
      return error(Code::kINVALID_ARGUMENT, "creating a session: device '", device, "' means ",
                   first, " first, but providers begins with ", named.front(),
                   "; give one of the two");
  }
  if (!named.empty()) return named;
  return first == kCpu ? std::vector<std::string>{first}
                       : std::vector<std::string>{first, std::string(kCpu)};
}

Status not_listed(std::string_view doing, std::string_view key, std::string_view provider,
                  const std::vector<ProviderSource>& sources) {
  std::vector<std::string> names;
  std::string listed;
  for (const ProviderSource& s : sources) {
    names.insert(names.end(), {s.name, provider_word(s.name)});
    listed += message(listed.empty() ? "" : ", ", s.name);
  }
  const std::string near = nearest_name(provider, names);
  return error(Code::kINVALID_ARGUMENT, doing, ": option '", key,
               "' is for a provider that the session does not list; it lists ", listed,
               near.empty() ? "" : "; did you mean '", near, near.empty() ? "" : "'?");
}

// Hands "provider.<name>.<key>" to the provider that the name stands for. If a provider has a
// schema, keys, types and choices are checked here; others reject unknown keys at open.
Status give_options(std::string_view doing, const Options& o,
                    std::vector<ProviderSource>& sources) {
  for (Options::ForPlugin& given : o.for_plugins()) {
    const size_t at = find_provider(
        sources, given.word, [](const ProviderSource& s) -> auto& { return s.name; });
    const std::string key = message("provider.", given.word, ".", given.key);
    if (at == sources.size()) return not_listed(doing, key, given.word, sources);
    ProviderSource* const it = &sources[at];
    if (std::ranges::find(it->options, given.key, &std::pair<std::string, std::string>::first) !=
        it->options.end())
      return error(Code::kINVALID_ARGUMENT, doing, ": option '", given.key, "' of ", it->name,
                   " is given twice, by different names of the provider");
    if (it->features & PFRT_PROVIDER_OPTIONS) {
      PFRT_ASSIGN(const std::vector<pfrt_option_info> schema,
                  declared_options(it->table->option_count, it->table->option_at, it->name));
      PFRT_TRY(check_option(schema, "creating a session", key, given.key, given.value));
    }
    it->options.emplace_back(std::move(given.key), std::move(given.value));
  }
  return {};
}

}  // namespace

std::vector<std::string> device_words(const pfrt_provider_table& table) {
  std::vector<std::string> words;
  std::string_view list = view(table.devices);
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    std::string_view word = list.substr(0, comma);
    while (word.starts_with(' ')) word.remove_prefix(1);
    while (word.ends_with(' ')) word.remove_suffix(1);
    if (!word.empty()) words.emplace_back(word);
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return words;
}

Result<std::vector<ProviderSource>> choose_providers(const Options& options,
                                                     const FindProvider& find) {
  PFRT_ASSIGN(const std::vector<std::string> names, wanted_providers(options, find));
  std::vector<ProviderSource> sources;
  for (const std::string& name : names) {
    auto found = find.named(name);
    if (!found.ok()) return found.take_status().prepend("creating a session");
    for (const ProviderSource& before : sources)
      if (before.name == found->name)
        return error(Code::kINVALID_ARGUMENT, "creating a session: provider ", before.name,
                     " is listed twice");
    sources.push_back(found.take());
    const std::vector<std::string> words = device_words(*sources.back().table);
    sources.back().device = words.empty() ? "" : words.front();
  }
  if (options.is_set(session_option::kDevice))
    sources.front().device = options.get(session_option::kDevice);
  PFRT_TRY(give_options("creating a session", options, sources));
  return sources;
}

Result<ProviderSource> choose_provider(std::string_view name, const Options& options,
                                       const FindProvider& find) {
  const std::string doing = message("asking ", name);
  auto found = find.named(name);
  if (!found.ok()) return found.take_status().prepend(doing);
  std::vector<ProviderSource> sources;
  sources.push_back(found.take());
  ProviderSource& source = sources.front();
  for (const Options::ForPlugin& given : options.for_plugins())
    if (!names_provider(given.word, source.name))
      return error(Code::kINVALID_ARGUMENT, doing, ": option 'provider.", given.word, ".",
                   given.key, "' is for another provider");
  const std::vector<std::string> words = device_words(*source.table);
  source.device = words.empty() ? "" : words.front();
  if (const std::string device = options.get(ask_option::kDevice); !device.empty()) {
    if (std::ranges::count(words, device) == 0)
      return error(Code::kINVALID_ARGUMENT, doing, ": it does not open device '", device,
                   "'; it opens ", view(source.table->devices));
    source.device = device;
  }
  PFRT_TRY(give_options(doing, options, sources));
  return std::move(source);
}

}  // namespace pfrt
