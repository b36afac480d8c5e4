// SPDX-License-Identifier: Apache-2.0
#include "core/environment/environment.h"

#include <algorithm>

#include "core/base/os/cpu.h"
#include "core/base/os/pages.h"
#include "core/base/os/variable.h"
#include "core/base/provider_name.h"
#include "core/exec/run/threads.h"
#include "core/memory/global_pool.h"

namespace pfrt {
namespace {

constexpr int64_t kMostThreads = 1024;
constexpr int64_t kMostIdleSeconds = 1'000'000'000;  // thirty years, which nanoseconds can count

// Adds the name or word nearest to |name| to |why|.
Status no_provider(const Status& why, std::vector<std::string> names,
                   const std::vector<std::shared_ptr<const ProviderSource>>& own,
                   std::string_view name) {
  std::string registered;
  for (const auto& source : own) {
    names.push_back(source->name);
    registered += message(registered.empty() ? "; registered are " : ", ", source->name);
  }
  const std::string near = nearest_name(name, names);
  return error(why.code(), why.message(), registered, near.empty() ? "" : "; did you mean '", near,
               near.empty() ? "" : "'?");
}

}  // namespace

Environment::Environment(const Options& options, const MakePlugins& plugins)
    : plugins_(plugins(logger_)),
      registry_(*plugins_),
      max_threads_(static_cast<uint32_t>(
          std::min<int64_t>(options.get(env_option::kThreads), kMostThreads))),
      guard_mapped_files_(options.get(env_option::kGuardMappedFiles)),
      runs_(budget_of("the environment",
                      static_cast<uint64_t>(options.get(env_option::kMemoryLimit)), nullptr),
            static_cast<uint64_t>(options.get(env_option::kAsyncQueue)), [this] { after_run(); }),
      cache_limits_{static_cast<uint64_t>(options.get(env_option::kCacheMaxBytes)),
                    static_cast<uint64_t>(options.get(env_option::kCacheMaxEntries)),
                    options.get(env_option::kCacheTtlS), true},
      cache_folder_(os::variable("PFRT_CACHE_DIR")),
      pressure_(options.get(env_option::kMemoryPressure) == "watch"
                    ? std::make_unique<PressureWatch>(options.get(env_option::kMemoryPressureRoot))
                    : nullptr),
      idle_ns_(
          static_cast<uint64_t>(std::min(options.get(env_option::kMemoryIdleS), kMostIdleSeconds)) *
          1'000'000'000u) {
  if (pressure_ || idle_ns_) maintenance_ = std::make_unique<Maintenance>([this] { tend(); });
  logger_.set_level(log_level_from(options.get(env_option::kLogLevel)));
  retain_threads();
}

std::shared_ptr<Environment> Environment::create(const Options& options,
                                                 const MakePlugins& plugins) {
  return std::shared_ptr<Environment>(new Environment(options, plugins));
}

Environment::~Environment() {
  maintenance_.reset();
  plugins_.reset();
  runs_.forget_replacements();
  release_threads();
}

std::shared_ptr<CompiledCache> Environment::cache(const std::string& folder) {
  const std::lock_guard lock(caches_mutex_);
  const std::string& wanted = !folder.empty()           ? folder
                              : !default_cache_.empty() ? default_cache_
                                                        : cache_folder_;
  if (wanted.empty() || wanted == "off") return nullptr;
  std::shared_ptr<CompiledCache>& cache = caches_[wanted];
  if (!cache) cache = std::make_shared<CompiledCache>(wanted, cache_limits_, &logger_, nullptr);
  return cache;
}

std::shared_ptr<CompiledCache> Environment::open_cache(const std::string& folder,
                                                       const CacheLimits& limits) {
  const std::lock_guard lock(caches_mutex_);
  std::shared_ptr<CompiledCache>& cache = caches_[folder];
  if (!cache || !(cache->entries().limits() == limits))
    cache = std::make_shared<CompiledCache>(folder, limits, &logger_, cache.get());
  return cache;
}

void Environment::set_default_cache(const std::string& folder) {
  const std::lock_guard lock(caches_mutex_);
  default_cache_ = folder;
}

uint32_t Environment::width(const Executor* executor) const {
  const uint32_t own = executor ? executor->width() : 0;
  const uint32_t width = own != 0 ? own : os::usable_processors();
  return max_threads_ ? std::min(width, max_threads_) : width;
}

Result<std::string> Environment::cache_key(const std::shared_ptr<const Model>& model,
                                           const Options& options) {
  PFRT_ASSIGN(Session::Context context, context_for(model, options));
  return Session::key(model, options, std::move(context));
}

Result<ProviderSource> Environment::provider_source(std::string_view name) {
  const auto own = registry_.providers();
  const size_t at = find_provider(
      own, name, [](const auto& s) -> auto& { return s->name; });
  if (at < own.size() && own[at]->name == name) return *own[at];
  auto found = plugins_->provider(name);
  if (found.ok()) return found;
  if (at < own.size()) return *own[at];
  return no_provider(found.status(), plugins_->provider_names(), own, name);
}

std::vector<ProviderSource> Environment::provider_sources() {
  std::vector<ProviderSource> out;
  for (const auto& own : registry_.providers()) out.push_back(*own);
  for (ProviderSource& source : plugins_->providers()) out.push_back(std::move(source));
  return out;
}

FindProvider Environment::finder() {
  return {[this](std::string_view name) { return provider_source(name); },
          [this] { return provider_sources(); }};
}

Result<Session::Context> Environment::context_for(const std::shared_ptr<const Model>& model,
                                                  const Options& options) {
  const std::shared_ptr<Environment> self = shared_from_this();
  Session::Context context;
  PFRT_ASSIGN(context.providers, choose_providers(options, finder()));
  for (ProviderSource& source : context.providers) source.keep = self;
  context.packed = &packed_;
  context.all = &sessions_;
  context.devices = &devices_;
  context.runs = &runs_;
  context.logger = &logger_;
  context.max_threads = max_threads_;
  if (const auto own = replacements()) context.executor = own->threads();
  context.keep = self;
  // A model whose operators are all built in need not be read here.
  context.operators = registry_.operators();
  if (!model->built_in_only()) {
    PFRT_ASSIGN(context.operators, registry_.operators_for(model->graph()));
  }
  context.cache = cache(options.get(session_option::kCacheDir));
  if (options.get(session_option::kOptimizationLevel) != "none") PFRT_TRY(registry_.open_passes());
  context.passes = registry_.passes();
  return context;
}

Result<std::shared_ptr<Session>> Environment::create_session(
    const std::shared_ptr<const Model>& model, const Options& options, SessionParts parts) {
  PFRT_ASSIGN(Session::Context context, context_for(model, options));
  context.samples = std::move(parts.samples);
  context.sample_source = std::move(parts.sample_source);
  context.log = parts.log;
  context.log_user = parts.log_user;
  context.keep_log = std::move(parts.keep_log);
  if (maintenance_ && !maintenance_->start())
    logger_.log(PFRT_LOG_WARNING,
                "looking after memory: the system has no thread for it; what is "
                "idle is given back by runs alone");
  return Session::create(model, options, parts.extra_outputs, std::move(context));
}

void Environment::after_run() {
  if (!maintenance_) return;
  if (pressure_) look_at_memory([this] { return trim(); });
  maintenance_->start();
}

uint64_t Environment::trim() {
  const uint64_t bytes = sessions_.release_memory() + global_pool::trim();
  os::return_freed_memory();
  return bytes;
}

void Environment::tend() {
  const auto give_back = [this](const std::function<uint64_t(Session&)>& fn) {
    const uint64_t bytes = sessions_.tend(fn);
    if (bytes) os::return_freed_memory();
    return bytes;
  };
  const uint64_t now = os::recent_ns();
  if (idle_ns_ && now > idle_ns_)
    give_back([&](Session& session) { return session.trim(now - idle_ns_); });
  if (pressure_)
    look_at_memory([&] {
      return global_pool::trim() + give_back([](Session& s) { return s.release_memory(); });
    });
}

void Environment::look_at_memory(const std::function<uint64_t()>& trim_all) {
  const std::string why = pressure_->look();
  if (why.empty()) return;
  const uint64_t bytes = trim_all();
  if (bytes == 0) pressure_->rest();
  logger_.write(PFRT_LOG_INFO, message(why, "; ", bytes, " bytes were given back"));
}

Result<std::shared_ptr<Provider>> Environment::open_device(ProviderSource source,
                                                           const Stop& stop) {
  source.keep = shared_from_this();
  return devices_.open(source, &logger_, stop);
}

Result<Answer> Environment::ask(Question question, const Options& options) {
  PFRT_ASSIGN(ProviderSource source, choose_provider(question.provider, options, finder()));
  if (!(source.features & PFRT_PROVIDER_ASK)) {
    std::string who;
    for (const ProviderSource& each : provider_sources())
      if (each.features & PFRT_PROVIDER_ASK) who += message(who.empty() ? "" : ", ", each.name);
    return error(Code::kUNSUPPORTED, "asking ", source.name,
                 ": this provider takes no questions; those that do are ",
                 who.empty() ? "none" : who);
  }
  question.threads = width(nullptr);
  Progress progress = options.progress();
  PFRT_TRY(progress.stage("asking", 1));
  const Stop stop = [&progress] { return progress.stop(); };
  PFRT_ASSIGN(const auto device, open_device(std::move(source), stop));
  auto answer = device->ask(question, stop, [&progress](double done) {
    // |stop| reports whether the call was stopped.
    (void)progress.at(done).ok();
  });
  if (answer.status().code() == Code::kDEVICE_LOST) devices_.give_up(device.get());
  return answer;
}

}  // namespace pfrt
