// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/commands.h"

namespace cli {

pyflame_rt::SessionOptions session_options(const SessionArgs& args) {
  pyflame_rt::SessionOptions options;
  options.num_threads = args.threads;
  options.providers = args.providers;
  if (!args.precision.empty()) options.precision = args.precision;
  if (!args.mode.empty()) options.execution_mode = args.mode;
  if (!args.max_error.empty()) options.extra["max_error"] = args.max_error;
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
