// SPDX-License-Identifier: Apache-2.0
#include "capi/plugin/plugins.h"

#include "capi/handle/guard.h"
#include "capi/plugin/client_pass.h"
#include "capi/plugin/importer.h"
#include "core/environment/registry.h"
#include "core/options/options.h"

namespace pfrt::capi {

namespace {

ProviderSource source_of(const Plugin& plugin) {
  ProviderSource source;
  source.name = plugin.name;
  source.path = plugin.path;
  // The first of its devices is the default; a session may name another.
  const std::string_view devices = view(plugin.provider()->devices);
  source.device = devices.substr(0, devices.find(','));
  source.table = plugin.provider();
  source.features = plugin.features;
  source.library = plugin.library;
  return source;
}

}  // namespace

Result<ProviderSource> LoadedPlugins::provider(std::string_view name) {
  PFRT_ASSIGN(const auto plugin, loader_.find("provider", name));
  return source_of(*plugin);
}

std::vector<ProviderSource> LoadedPlugins::providers() {
  std::vector<ProviderSource> out;
  // A plug-in that the loader rejected has no table.
  for (const auto& plugin : loader_.open_all("provider"))
    if (plugin->table) out.push_back(source_of(*plugin));
  return out;
}

std::vector<std::string> LoadedPlugins::provider_names() {
  std::vector<std::string> names;
  for (const auto& plugin : loader_.list("provider")) {
    if (!plugin->name.empty()) names.push_back(plugin->name);
    names.push_back(plugin->short_name);
  }
  return names;
}

Result<std::shared_ptr<const Importer>> LoadedPlugins::importer_named(std::string_view extension,
                                                                      std::string* why) {
  PFRT_ASSIGN(auto named, loader_.open_short("import", extension));
  if (named && named->table) return importer_of(std::move(named));
  if (named) *why = message("its importer '", named->path, "' is not usable: ", named->reason);
  return std::shared_ptr<const Importer>();
}

std::vector<std::shared_ptr<const Importer>> LoadedPlugins::importers() {
  std::vector<std::shared_ptr<const Importer>> out;
  for (const auto& plugin : loader_.open_all("import"))
    if (plugin->table) out.push_back(importer_of(plugin));
  return out;
}

std::vector<OperatorTable> LoadedPlugins::operators() {
  std::vector<OperatorTable> out;
  for (const auto& plugin : loader_.open_all("ops"))
    if (plugin->table)
      out.push_back(
          {plugin->path, static_cast<const pfrt_ops_table*>(plugin->table), plugin->library});
  return out;
}

Result<std::shared_ptr<const Plugin>> LoadedPlugins::executor(std::string_view word) {
  PFRT_ASSIGN(auto named, loader_.open_short("executor", word));
  if (named && named->table) return named;
  if (named)
    return error(Code::kPLUGIN, "opening executor '", word, "': '", named->path,
                 "' is not usable: ", named->reason);
  std::vector<std::string> there;
  std::string list;
  for (const auto& plugin : loader_.list("executor")) {
    list += message(list.empty() ? "" : ", ", plugin->short_name);
    there.push_back(plugin->short_name);
  }
  there.emplace_back("pool");
  const std::string near = nearest_name(word, there);
  return error(
      Code::kNOT_FOUND, "opening executor '", word, "': there is no file libpyflamert_executor_",
      word, ".so in ", loader_.searched(), "; executors there are ", list.empty() ? "none" : list,
      near.empty() ? "" : "; did you mean '", near, near.empty() ? "" : "'?",
      "; put the file into one of these folders, name its folder by "
      "PFRT_PLUGIN_PATH or the option 'plugin_path', or leave the option 'executor' out: runs "
      "then have the library's own threads");
}

Result<std::vector<PassTable>> LoadedPlugins::passes(const std::set<std::string>& known) {
  std::vector<PassTable> out;
  for (const auto& plugin : loader_.open_all("pass")) {
    if (!plugin->table || known.count(plugin->path)) continue;
    const auto& table = *static_cast<const pfrt_pass_table*>(plugin->table);
    PassTable& taken = out.emplace_back();
    taken.path = plugin->path;
    for (size_t i = 0; i < table.count; ++i) {
      if (!table.passes[i])
        return error(Code::kPLUGIN, "opening plug-in '", plugin->path, "': pass ", i,
                     " of its table is NULL");
      const pfrt_custom_pass given = abi::known(table.passes[i]);
      const auto keep = lifetime(given.release, given.user, plugin->library);
      PFRT_TRY(abi::by_plugin(abi::check(*table.passes[i]), Code::kPLUGIN)
                   .prepend(message("opening plug-in '", plugin->path, "': pass ", i)));
      auto made = client_pass(given, keep, logger_, "taking");
      if (!made.ok()) return made.take_status().prepend("plug-in '" + plugin->path + "'");
      taken.passes.push_back(made.take());
    }
  }
  return out;
}

}  // namespace pfrt::capi
