// SPDX-License-Identifier: Apache-2.0
//
// What a client registered with an environment (custom.h), and what its plug-ins of kind ops
// brought. Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "core/op/engine/operator_set.h"
#include "core/plan/provider.h"
#include "core/session/session.h"
#include "plugins/loader/loader.h"
#include "pyflame_rt/custom.h"

namespace pfrt::capi {

class Hooks {
 public:
  OperatorSet::Ptr operators() const;
  Status add_operator(const pfrt_custom_op& op, std::shared_ptr<void> keep);
  Status remove_operator(std::string_view domain, std::string_view name);
  // Registers what plug-ins of kind ops have, once each.
  Status open_plugins(PluginLoader& loader);

  // Providers as sessions open them; |source| has its name.
  Status add_provider(ProviderSource source, PluginLoader& loader);
  std::vector<std::shared_ptr<const ProviderSource>> providers() const;

  // Registers what plug-ins of kind pass have, once each, after those that are there.
  Status open_pass_plugins(PluginLoader& loader, Logger& logger);
  Status add_pass(std::shared_ptr<const ClientPass> pass, std::string_view after);
  std::vector<std::shared_ptr<const ClientPass>> passes() const;

 private:
  mutable std::mutex mutex_;  // never held while something of the client's is released
  OperatorSet::Ptr operators_;
  std::set<std::string> opened_;  // paths of plug-ins
  std::vector<std::shared_ptr<const ProviderSource>> providers_;
  std::vector<std::shared_ptr<const ClientPass>> passes_;
};

// |given| as sessions and optimizers run it; it holds |keep|. |doing| begins an error.
Result<std::shared_ptr<const ClientPass>> client_pass(const pfrt_custom_pass& given,
                                                      std::shared_ptr<void> keep, Logger& logger,
                                                      std::string_view doing);

struct EnvState;

// The registered operators for a model of |graph|: plug-ins are asked when nobody else knows one.
Result<OperatorSet::Ptr> operators_for(EnvState& env, const Graph& graph);

// Slots of pfrt_env_api.
pfrt_status* register_operator(pfrt_env* env, const pfrt_custom_op* op);
pfrt_status* unregister_operator(pfrt_env* env, pfrt_string domain, pfrt_string name);
pfrt_status* custom_operator_count(pfrt_env* env, size_t* out_count);
pfrt_status* custom_operator_at(pfrt_env* env, size_t index, pfrt_operator_info* out_info);
pfrt_status* register_provider(pfrt_env* env, const pfrt_client_provider* provider);
pfrt_status* register_pass(pfrt_env* env, const pfrt_custom_pass* pass);

}  // namespace pfrt::capi
