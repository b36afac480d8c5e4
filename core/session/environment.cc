// SPDX-License-Identifier: Apache-2.0
#include "core/session/environment.h"

#include <algorithm>

#include "core/exec/run/threads.h"
#include "core/session/choose_providers.h"

namespace pfrt {
namespace {

constexpr int64_t kMostThreads = 1024;

}  // namespace

Environment::Environment(const Options& options, const MakePlugins& plugins)
    : plugins_(plugins(logger_)),
      registry_(*plugins_),
      max_threads_(
          static_cast<uint32_t>(std::min<int64_t>(options.get_int("threads"), kMostThreads))),
      guard_mapped_files_(options.get_bool("guard_mapped_files")) {
  logger_.set_level(log_level_from(options.get_string("log_level")));
  retain_threads();
}

std::shared_ptr<Environment> Environment::create(const Options& options,
                                                 const MakePlugins& plugins) {
  return std::shared_ptr<Environment>(new Environment(options, plugins));
}

Environment::~Environment() {
  plugins_.reset();
  replacements_.reset();
  release_threads();
}

Result<ProviderSource> Environment::provider_source(std::string_view name) {
  for (const auto& source : registry_.providers())
    if (source->name == name) return *source;
  return plugins_->provider(name);
}

Result<std::shared_ptr<Session>> Environment::create_session(
    const std::shared_ptr<const Model>& model, const Options& options,
    const std::vector<std::string>& extra_outputs, std::vector<NamedValues> samples) {
  const std::shared_ptr<Environment> self = shared_from_this();
  Session::Context context;
  PFRT_ASSIGN(context.providers, choose_providers(options, [this](std::string_view name) {
                return provider_source(name);
              }));
  for (ProviderSource& source : context.providers) source.keep = self;
  context.packed = &packed_;
  context.all = &sessions_;
  context.logger = &logger_;
  context.max_threads = max_threads_;
  context.keep = self;
  PFRT_ASSIGN(context.operators, registry_.operators_for(model->graph()));
  if (options.get_string("optimization_level") != "none") PFRT_TRY(registry_.open_passes());
  context.passes = registry_.passes();
  context.samples = std::move(samples);
  return Session::create(model, options, extra_outputs, std::move(context));
}

std::shared_ptr<const Replacements> Environment::replacements() const {
  if (!replaced_.load(std::memory_order_acquire)) return nullptr;
  std::lock_guard lock(replacements_mutex_);
  return replacements_;
}

void Environment::replace(const std::function<void(Replacements&)>& change) {
  auto next = std::make_shared<Replacements>();
  std::shared_ptr<const Replacements> before;  // outlives the locks
  std::lock_guard one_at_a_time(replacing_);
  if (const auto now = replacements()) *next = *now;
  change(*next);
  before = std::move(next);
  std::lock_guard lock(replacements_mutex_);
  replacements_.swap(before);
  replaced_.store(true, std::memory_order_release);
}

}  // namespace pfrt
