// SPDX-License-Identifier: Apache-2.0
//
// Reads a session's options of tuning, and connects tuning with the cache.
#include "core/session/session.h"

namespace pfrt {

Status Session::take_tuning(const Options& options) {
  using namespace session_option;
  const std::string mode = options.get(kTune);
  const auto only_when_on = [&](const auto& option) -> Status {
    if (mode == "on" || !options.is_set(option)) return {};
    return error(Code::kINVALID_ARGUMENT, "creating a session: ", option.key,
                 " is of tune 'on', but tune is '", mode, "'");
  };
  PFRT_TRY(only_when_on(kTuneBudgetS));
  PFRT_TRY(only_when_on(kTuneSearch));
  PFRT_TRY(only_when_on(kTuneIterations));
  PFRT_TRY(only_when_on(kTuneRepeats));
  if (mode == "off") return {};
  Tuning::Config config;
  config.measure = mode == "on";
  if (!config.measure && !cache_)
    return error(Code::kINVALID_ARGUMENT,
                 "creating a session: tune 'cached' uses what is in the cache folder, and there is "
                 "none; give cache_dir, or set PFRT_CACHE_DIR");
  const std::string search = options.get(kTuneSearch);
  if (search != "race") config.search = search == "random" ? PFRT_TUNE_RANDOM : PFRT_TUNE_MODEL;
  const auto number = [&](const auto& option) {
    return static_cast<uint32_t>(std::min<int64_t>(options.get(option), 1 << 20));
  };
  config.iterations = number(kTuneIterations);
  config.repeats = number(kTuneRepeats);
  constexpr double kMostSeconds = 1e6;
  config.budget_ns =
      static_cast<uint64_t>(std::clamp(options.get(kTuneBudgetS), 0.0, kMostSeconds) * 1e9);
  tuning_ = std::make_unique<Tuning>(
      config, [cache = cache_](const std::string& provider, const std::string& identity) {
        return cache && !identity.empty() ? cache->tunings(provider, identity) : nullptr;
      });
  return {};
}

}  // namespace pfrt
