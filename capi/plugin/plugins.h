// SPDX-License-Identifier: Apache-2.0
//
// The plug-ins of an environment: core's view of them over the loader. Thread-safe.
#pragma once

#include <memory>

#include "core/environment/plugin_source.h"
#include "core/exec/run/executor.h"
#include "plugins/loader/loader.h"

namespace pfrt::capi {

class LoadedPlugins final : public PluginSource {
 public:
  // |logger| must outlive the object.
  LoadedPlugins(std::vector<PluginFolder> folders, Logger& logger)
      : loader_(std::move(folders), &logger), logger_(logger) {}

  PluginLoader& loader() { return loader_; }

  Result<ProviderSource> provider(std::string_view name) override;
  std::vector<ProviderSource> providers() override;
  std::vector<std::string> provider_names() override;
  Result<std::shared_ptr<const Importer>> importer_named(std::string_view extension,
                                                         std::string* why) override;
  std::vector<std::shared_ptr<const Importer>> importers() override;
  std::vector<OperatorTable> operators() override;
  Result<std::vector<PassTable>> passes(const std::set<std::string>& known) override;
  // Of kind executor, by the word in its file's name; NOT_FOUND says which file was looked for.
  Result<std::shared_ptr<const Plugin>> executor(std::string_view word);
  std::string searched() const override { return loader_.searched(); }

 private:
  PluginLoader loader_;
  Logger& logger_;
};

// The executor of the plug-in of kind executor whose file's name has |word|; |logger| outlives the
// call.
Result<std::shared_ptr<Executor>> plugin_executor(LoadedPlugins& plugins, std::string_view word,
                                                  Logger& logger);

}  // namespace pfrt::capi
