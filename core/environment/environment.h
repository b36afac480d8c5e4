// SPDX-License-Identifier: Apache-2.0
//
// Holds what models and sessions share: the log, plug-ins, clients' registrations, packed
// constants, and what clients put in the place of the library's own memory and threads. Models and
// sessions hold it, so that plug-ins stay loaded. Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "core/base/os/log.h"
#include "core/environment/choose_providers.h"
#include "core/environment/maintenance.h"
#include "core/environment/plugin_source.h"
#include "core/environment/pressure_watch.h"
#include "core/environment/registry.h"
#include "core/exec/packed.h"
#include "core/memory/allocator.h"
#include "core/memory/slabs.h"
#include "core/provider/devices.h"
#include "core/session/compiled_cache.h"
#include "core/session/runs.h"
#include "core/session/session.h"
#include "core/session/sessions.h"

namespace pfrt {

class Environment : public std::enable_shared_from_this<Environment> {
 public:
  // Makes the source of plug-ins, which logs to the environment's log.
  using MakePlugins = std::function<std::unique_ptr<PluginSource>(Logger& logger)>;
  // |options| are of kind PFRT_OPTIONS_ENV.
  static std::shared_ptr<Environment> create(const Options& options, const MakePlugins& plugins);
  ~Environment();
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  Logger& logger() { return logger_; }
  PluginSource& plugins() { return *plugins_; }
  Registry& registry() { return registry_; }
  PackedStore& packed() { return packed_; }
  uint32_t max_threads() const { return max_threads_; }  // 0 = no limit
  // Threads for work that may take all: those of |executor|, or of the process where it is null.
  uint32_t width(const Executor* executor) const;
  bool guard_mapped_files() const { return guard_mapped_files_; }
  const BudgetPtr& budget() const { return runs_.budget(); }
  // The cache of compiled models in |folder|, as the option cache_dir of a load or session gives
  // it, or in PFRT_CACHE_DIR where |folder| is empty. Null: none.
  std::shared_ptr<CompiledCache> cache(const std::string& folder);
  // Opens the cache in |folder| with limits of its own, which are in force from now on.
  std::shared_ptr<CompiledCache> open_cache(const std::string& folder, const CacheLimits& limits);
  // Replaces PFRT_CACHE_DIR by |folder|; empty restores it.
  void set_default_cache(const std::string& folder);
  // The key of a session of |model| with |options| in a cache; UNSUPPORTED where it is not kept.
  Result<std::string> cache_key(const std::shared_ptr<const Model>& model, const Options& options);

  // The provider to open, without options. |name| is its name or a word for it
  // (core/base/provider_name.h). NOT_FOUND lists the providers there are.
  Result<ProviderSource> provider_source(std::string_view name);
  // All usable providers: registered ones, then those of plug-ins.
  std::vector<ProviderSource> provider_sources();

  // What a client gives a session besides its model and options.
  struct SessionParts {
    std::vector<std::string> extra_outputs;
    std::vector<NamedValues> samples;
    std::unique_ptr<SampleSource> sample_source;  // may be null
    pfrt_log_fn log = nullptr;                    // null: the environment's
    void* log_user = nullptr;
    std::shared_ptr<void> keep_log;  // lives until |log| is called no more; may be null
  };
  // A session over |model|, as |options| of kind PFRT_OPTIONS_SESSION say.
  Result<std::shared_ptr<Session>> create_session(const std::shared_ptr<const Model>& model,
                                                  const Options& options, SessionParts parts);

  // Gives back everything that can be made again; returns the bytes of blocks and pools freed.
  uint64_t trim();

  // Opens the device of |source|, or shares the handle of those who have it open.
  Result<std::shared_ptr<Provider>> open_device(ProviderSource source, const Stop& stop);
  // The answer of the provider's device to |question|, whose threads this sets; |options| are of
  // kind ASK.
  Result<Answer> ask(Question question, const Options& options);

  // Clients' replacements for the library's own, as Runs has them.
  std::shared_ptr<const Replacements> replacements() const { return runs_.replacements(); }
  void replace(const std::function<void(Replacements&)>& change) { runs_.replace(change); }

 private:
  Environment(const Options& options, const MakePlugins& plugins);
  Result<Session::Context> context_for(const std::shared_ptr<const Model>& model,
                                       const Options& options);
  FindProvider finder();
  // Trims where memory is watched and about to run out.
  void after_run();
  void look_at_memory(const std::function<uint64_t()>& trim_all);
  // Runs on the thread of maintenance: frees blocks that were not used for long, and trims where
  // memory is about to run out, even while no run ends.
  void tend();

  Logger logger_;
  std::unique_ptr<PluginSource> plugins_;
  Registry registry_;
  PackedStore packed_;
  Devices devices_;
  Sessions sessions_;
  const uint32_t max_threads_;
  const bool guard_mapped_files_;
  Runs runs_;
  const CacheLimits cache_limits_;
  const std::string cache_folder_;  // of PFRT_CACHE_DIR
  std::mutex caches_mutex_;
  std::string default_cache_;  // in the place of cache_folder_ where it is not empty
  std::map<std::string, std::shared_ptr<CompiledCache>> caches_;  // by folder
  const std::unique_ptr<PressureWatch> pressure_;                 // null = off
  const uint64_t idle_ns_;                    // after which blocks that wait are freed; 0 = never
  std::unique_ptr<Maintenance> maintenance_;  // null: nothing to do
};

// Makes the environment's allocator and budget serve this thread's allocations while it lives.
class EnvironmentScope {
 public:
  explicit EnvironmentScope(const Environment& environment)
      : EnvironmentScope(environment.replacements(), environment.budget()) {}
  // A scope for making objects that live as long as a model or a session. |allocator| false: memory
  // is the library's.
  static EnvironmentScope lasting(const Environment& environment, bool allocator = true) {
    return lasting(environment, environment.budget(), allocator);
  }
  // |budget| is the environment's, or one inside it.
  static EnvironmentScope lasting(const Environment& environment, BudgetPtr budget,
                                  bool allocator = true) {
    const auto own = environment.replacements();
    return EnvironmentScope(
        own && own->allocator && allocator ? own->allocator : std::make_shared<Slabs>(),
        std::move(budget));
  }

 private:
  EnvironmentScope(const std::shared_ptr<const Replacements>& own, BudgetPtr budget)
      : scope_({own ? own->allocator : nullptr, std::move(budget), own ? own->planner : nullptr}) {}
  EnvironmentScope(AllocatorPtr allocator, BudgetPtr budget)
      : scope_({std::move(allocator), std::move(budget)}) {}
  MemoryScope scope_;
};

}  // namespace pfrt
