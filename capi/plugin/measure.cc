// SPDX-License-Identifier: Apache-2.0
//
// Providers measure their devices.
#include <algorithm>

#include "capi/handle/env.h"
#include "capi/handle/guard.h"
#include "capi/handle/slots.h"
#include "capi/plugin/plugins.h"
#include "core/base/os/cpu.h"

namespace pfrt::capi {
namespace {

constexpr double kSeconds = 10, kMostSeconds = 3600;

// Stands between a provider and the client: names the provider, and makes one progress of several.
struct Relay {
  pfrt_measure_request client;
  std::string_view provider;
  size_t index, count;
};

void report(void* user, const pfrt_measurement* measurement) {
  const auto& relay = *static_cast<const Relay*>(user);
  pfrt_measurement named = read(measurement);
  named.struct_size = sizeof named;
  named.provider = to_c(relay.provider);
  relay.client.report(relay.client.user, &named);
}

pfrt_code progress(void* user, double fraction) {
  const auto& relay = *static_cast<const Relay*>(user);
  if (!relay.client.progress) return PFRT_CODE_OK;
  const double done = static_cast<double>(relay.index) + std::clamp(fraction, 0.0, 1.0);
  return relay.client.progress(relay.client.user, done / static_cast<double>(relay.count));
}

Result<std::vector<ProviderSource>> who_measures(pfrt_env* env, std::string_view name) {
  std::vector<ProviderSource> out;
  if (!name.empty()) {
    PFRT_ASSIGN(out.emplace_back(), env->state->provider_source(name));
    if (!(out[0].features & PFRT_PROVIDER_MEASURE))
      return error(Code::kUNSUPPORTED, "measuring ", name,
                   ": this provider does not measure its device");
    return out;
  }
  std::vector<std::string> names;
  for (const auto& plugin : env->loaded->loader().open_all("provider"))
    if (plugin->table && (plugin->features & PFRT_PROVIDER_MEASURE)) names.push_back(plugin->name);
  for (const auto& source : env->state->registry().providers())
    if (source->features & PFRT_PROVIDER_MEASURE) names.push_back(source->name);
  for (const std::string& each : names) {
    PFRT_ASSIGN(out.emplace_back(), env->state->provider_source(each));
  }
  if (out.empty())
    return error(Code::kUNSUPPORTED,
                 "measuring: none of the providers here measures its device; pfrt plugins says "
                 "what was found");
  return out;
}

}  // namespace

pfrt_status* measure(pfrt_env* env, pfrt_string provider, const pfrt_measure_request* asked) {
  return guard([&]() -> Status {
    if (!env || !asked) return null_argument(env ? "request" : "env");
    pfrt_measure_request request = read(asked);
    request.struct_size = sizeof request;
    if (!request.report) return null_argument("request->report");
    if (!(request.seconds >= 0 && request.seconds <= kMostSeconds))
      return error(Code::kINVALID_ARGUMENT, "measuring for ", request.seconds,
                   " seconds: give up to ", kMostSeconds, ", or 0 for ", kSeconds);
    if (request.seconds == 0) request.seconds = kSeconds;
    if (request.threads == 0) {
      request.threads = os::usable_processors();
      if (const uint32_t most = env->state->max_threads())
        request.threads = std::min(request.threads, most);
    }
    PFRT_ASSIGN(const std::vector<ProviderSource> sources, who_measures(env, view(provider)));
    for (size_t i = 0; i < sources.size(); ++i) {
      const ProviderSource& source = sources[i];
      PFRT_ASSIGN(const auto opened, Provider::open(source, &env->state->logger()));
      Relay relay{request, source.name, i, sources.size()};
      pfrt_measure_request inner = request;
      inner.user = &relay;
      inner.report = report;
      inner.progress = progress;
      Sink sink(&env->state->logger());
      const pfrt_code code =
          sink.call([&] { return source.table->measure(opened->handle(), &inner, sink.get()); },
                    PFRT_CODE_PLUGIN, "plug-in");
      PFRT_TRY(sink.status(code, "measuring ", source.name));
    }
    return {};
  });
}

}  // namespace pfrt::capi
