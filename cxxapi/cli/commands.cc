// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/commands.h"

#include "cxxapi/cli/line/usage_error.h"

namespace cli {

pyflame_rt::SessionOptions session_options(const SessionArgs& args) {
  pyflame_rt::SessionOptions options;
  options.num_threads = args.threads;
  options.providers = args.providers;
  if (!args.device.empty()) options.device = args.device;
  for (const std::string& option : args.options) {
    const size_t equal = option.find('=');
    if (equal == std::string::npos || option.find('.') >= equal)
      throw UsageError("--option " + option +
                       ": give it as PROVIDER.KEY=VALUE, as in "
                       "wse.arithmetic=fp32");
    options.extra["provider." + option.substr(0, equal)] = option.substr(equal + 1);
  }
  if (!args.precision.empty()) options.precision = args.precision;
  if (!args.mode.empty()) options.execution_mode = args.mode;
  if (!args.max_error.empty()) options.extra["max_error"] = args.max_error;
  if (!args.cache_dir.empty()) options.cache_dir = args.cache_dir;
  if (args.verify) options.extra["verify"] = "on";
  if (args.tune) options.tune = "on";
  std::string skip;
  for (const std::string& pass : args.skip) skip += (skip.empty() ? "" : ",") + pass;
  if (!skip.empty()) options.extra["skip_passes"] = skip;
  const std::vector<std::string> levels = {"none", "basic", "extended", "all"};
  for (size_t i = 0; i < levels.size(); ++i) {
    if (args.level == levels[i]) options.optimization_level = static_cast<pyflame_rt::OptLevel>(i);
  }
  return options;
}

}  // namespace cli
