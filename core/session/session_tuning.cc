// SPDX-License-Identifier: Apache-2.0
//
// Reads a session's options of tuning, and connects tuning with the cache.
#include "core/session/session.h"

namespace pfrt {

Status Session::take_tuning(const Options& options) {
  const std::string& mode = options.get_string("tune");
  for (const char* key : {"tune_budget_s", "tune_search", "tune_iterations", "tune_repeats"})
    if (mode != "on" && options.is_set(key))
      return error(Code::kINVALID_ARGUMENT, "creating a session: ", key,
                   " is of tune 'on', but tune is '", mode, "'");
  if (mode == "off") return {};
  Tuning::Config config;
  config.measure = mode == "on";
  if (!config.measure && !cache_)
    return error(Code::kINVALID_ARGUMENT,
                 "creating a session: tune 'cached' uses what is in the cache folder, and there is "
                 "none; give cache_dir, or set PFRT_CACHE_DIR");
  const std::string& search = options.get_string("tune_search");
  if (search != "race") config.search = search == "random" ? PFRT_TUNE_RANDOM : PFRT_TUNE_MODEL;
  const auto number = [&](const char* key) {
    return static_cast<uint32_t>(std::min<int64_t>(options.get_int(key), 1 << 20));
  };
  config.iterations = number("tune_iterations");
  config.repeats = number("tune_repeats");
  constexpr double kMostSeconds = 1e6;
  config.budget_ns = static_cast<uint64_t>(
      std::clamp(options.get_float("tune_budget_s"), 0.0, kMostSeconds) * 1e9);
  tuning_ = std::make_unique<Tuning>(
      config, [cache = cache_](const std::string& provider, const std::string& identity) {
        return cache && !identity.empty() ? cache->tunings(provider, identity) : nullptr;
      });
  return {};
}

}  // namespace pfrt
