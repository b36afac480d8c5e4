// SPDX-License-Identifier: Apache-2.0
//
// The tests of each kind of plug-in, as bodies of trials.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cxxapi/cli/check_plugin/trial.h"

namespace cli::check {

struct NamedTrial {
  std::string name;
  std::function<void(Trial&)> body;
};

// Facts about the file that the first trial finds.
struct PluginFacts {
  std::string path;
  std::string kind;  // from the file's name
  uint64_t features = 0;
  uint32_t min_minor = 0;
};

// Tests plug-ins of every kind: opening, negotiation, the table. Tells "kind", "name", "version",
// "features" and "min_minor" when the kind's own tests can use the plug-in.
void check_description(Trial& trial, const std::string& path);
std::vector<NamedTrial> description_trials(const PluginFacts& facts);
std::vector<NamedTrial> provider_trials(const PluginFacts& facts);
// Tests a provider's reports about itself: fingerprint, ask, report, exported executables.
std::vector<NamedTrial> provider_verb_trials(const PluginFacts& facts);
std::vector<NamedTrial> ops_trials(const PluginFacts& facts);
std::vector<NamedTrial> import_trials(const PluginFacts& facts);
std::vector<NamedTrial> service_trials(const PluginFacts& facts);
std::vector<NamedTrial> executor_trials(const PluginFacts& facts);

}  // namespace cli::check
