// SPDX-License-Identifier: Apache-2.0
//
// Holds a client's registrations with an environment (custom.h), and the operators and passes of
// its plug-ins. Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/environment/plugin_source.h"
#include "core/op/engine/operator_set.h"
#include "core/provider/provider.h"
#include "core/session/client_pass.h"
#include "pyflame_rt/custom.h"

namespace pfrt {

class Registry {
 public:
  explicit Registry(PluginSource& plugins) : plugins_(plugins) {}

  OperatorSet::Ptr operators() const;
  // The operators for a model of |graph|: plug-ins are asked when nobody else knows one.
  Result<OperatorSet::Ptr> operators_for(const Graph& graph);
  // |keep| is released with the operator.
  Status add_operator(const pfrt_custom_op& op, std::shared_ptr<void> keep);
  // Removes all operators of that name, of any version and types.
  Status remove_operator(std::string_view domain, std::string_view name);
  // Registers the operators of plug-ins of kind ops, once each.
  Status open_operators();

  // Registers a provider that sessions may open; |source| has its name.
  Status add_provider(ProviderSource source);
  std::vector<std::shared_ptr<const ProviderSource>> providers() const;

  // Registers the passes of plug-ins of kind pass, once each, after those that are there.
  Status open_passes();
  Status add_pass(std::shared_ptr<const ClientPass> pass, std::string_view after);
  std::vector<std::shared_ptr<const ClientPass>> passes() const;

 private:
  PluginSource& plugins_;
  mutable std::mutex mutex_;  // never held while an object of the client's is released
  OperatorSet::Ptr operators_;
  std::set<std::string> opened_;  // paths of plug-ins
  std::vector<std::shared_ptr<const ProviderSource>> providers_;
  std::vector<std::shared_ptr<const ClientPass>> passes_;
};

// INVALID_ARGUMENT when |what|, which a client registers, was built for another ABI (0 = it does
// not say), or its name has a NUL character in it.
Status check_registered(std::string_view what, uint32_t abi, std::string_view name);

// Calls |release_fn| when the last reference goes, and releases |library| only then.
std::shared_ptr<void> lifetime(void (*release_fn)(void*), void* user,
                               std::shared_ptr<void> library = nullptr);

}  // namespace pfrt
