// SPDX-License-Identifier: Apache-2.0
//
// A model planned for its providers. run checks what it is given, takes the plan for the inputs'
// signature and runs it; safe from many threads at once. Where a provider fails, the graph is
// planned again without it (recovery.cc). Whoever hands results on asks model()->intact first: a
// run over a file that is cut short ends, on zeros.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/made_once.h"
#include "core/base/os/profile.h"
#include "core/exec/compiled_graph.h"
#include "core/model/model.h"
#include "core/model/ports.h"
#include "core/options/options.h"
#include "core/provider/provider_set.h"
#include "core/session/client_pass.h"
#include "core/session/compiled_cache.h"
#include "core/session/prepare.h"
#include "core/verify/node_precision.h"

namespace pfrt {

class Devices;
class Sessions;

// "Ready" and the like; empty for what is none.
std::string_view phase_name(pfrt_session_phase phase);

class Session : public std::enable_shared_from_this<Session> {
 public:
  ~Session();
  struct Context {
    std::vector<ProviderSource> providers;
    PackedStore* packed = nullptr;
    Sessions* all = nullptr;     // of the environment; may be null
    Devices* devices = nullptr;  // likewise
    Logger* logger = nullptr;
    OperatorSet::Ptr operators;                             // beside the built-in ones; may be null
    std::shared_ptr<CompiledCache> cache;                   // null: none
    std::vector<std::shared_ptr<const ClientPass>> passes;  // in order
    std::vector<NamedValues> samples;                       // inputs to verify passes with, too
    uint32_t max_threads = 0;                               // of the environment; 0 = no limit
    std::shared_ptr<Executor> executor;                     // null: the process's own threads
    std::shared_ptr<void> keep;  // what must live as long as the session: the environment
  };
  static Result<std::shared_ptr<Session>> create(std::shared_ptr<const Model> model,
                                                 const Options& options,
                                                 const std::vector<std::string>& extra_outputs,
                                                 Context context);
  // Of its entry in a cache, which is not looked for; UNSUPPORTED where it would have none.
  static Result<std::string> key(std::shared_ptr<const Model> model, const Options& options,
                                 Context context);

  const std::vector<PortInfo>& inputs() const { return inputs_; }
  const std::vector<PortInfo>& outputs() const { return outputs_; }
  const std::vector<std::string>& providers() const { return provider_names_; }
  Logger& logger() const { return *logger_; }
  const ProviderSet& provider_set() const { return *provider_set_; }
  const std::shared_ptr<const Model>& model() const { return model_; }
  // Whether its runs take memory from the environment's allocator.
  bool env_allocators() const { return env_allocators_; }
  // Takes a provider that was set aside into use again. NOT_FOUND where the session has none of
  // this name; what opening its device or planning for it says, and it stays aside.
  Status readmit(std::string_view provider);
  // Threads of a run that asks for so many (0 = the session's), of |available| (0 = those that the
  // process may use now).
  uint32_t width(int64_t asked, uint32_t available = 0) const;
  // Where runs are to be recorded; null = nowhere.
  Profile* profile() const { return open_profile_.load(std::memory_order_acquire); }
  // Since when, on os::monotonic_ns; 0 = the session's option is off.
  uint64_t profiling_start_ns() const { return profile_ ? profile_->start_ns() : 0; }
  // Writes the profile and closes it, and gives the file's path; the same again afterwards. Empty
  // where the session's option is off. On failure the profile stays open.
  Result<std::string_view> end_profiling();

  Status run(const std::vector<ValuePtr>& inputs, const std::vector<OutputRequest>& requests,
             const RunControl& control, std::vector<ValuePtr>& outputs);

  const RunStatistics& statistics() const { return *statistics_; }

  // The open device, with memory of its own, of provider |name|; empty = the first there is.
  Result<std::shared_ptr<Provider>> device_of(std::string_view name) const;

  struct Explanation {
    std::vector<StepReport> steps;  // started_ns: since the first of them
    std::vector<CounterReport> counters;
    std::vector<std::string> notes;
  };
  Explanation explain();

  // Drops what can be made again; runs under way keep what they use. The bytes of blocks that this
  // was.
  uint64_t release_memory();
  // Frees idle blocks that no run has used since |given_ns|; the bytes that this was.
  uint64_t trim(uint64_t given_ns = UINT64_MAX);
  struct MemoryReport : MemoryUse {
    uint64_t weights = 0;
  };
  MemoryReport memory_report() const;
  pfrt_session_phase phase() const;

 private:
  struct Planned {
    std::shared_ptr<CompiledGraph> graph;
    std::vector<size_t> order;  // of its inputs: where each is among the session's
  };
  // What runs use until a provider fails.
  struct Plans {
    std::vector<Candidate> candidates;
    std::shared_ptr<const Model::Optimised> optimised;  // for these candidates
    Planned main;
    // With some initializers as inputs: by those, and last by whether names tie dimensions.
    MadeOnce<std::vector<bool>, std::shared_ptr<const Planned>> variants{8};
    // For requests that one of the candidates refuses: by that one, without it.
    MadeOnce<const Device*, std::shared_ptr<Plans>> without{8};
  };

  Session() = default;
  // One whose providers are open, and what its graph is to be prepared with.
  static Result<std::pair<std::shared_ptr<Session>, Preparation::Config>> begin(
      std::shared_ptr<const Model> model, const Options& options,
      const std::vector<std::string>& extra_outputs, Context context);
  void forget_failure() {
    if (phase_.load(std::memory_order_relaxed) != PFRT_PHASE_READY) enter(PFRT_PHASE_READY);
  }
  Status take_options(const Options& options);
  // With |cache_|, which may be null.
  Status take_tuning(const Options& options);
  // Of a session that began to be made at |started_ns|.
  void open_profile(const std::string& prefix, uint64_t started_ns);
  void list_inputs();
  void list_outputs();
  // The first plans of all; |auto_precision|: of the cheapest arithmetic that is exact enough.
  Status make_plans(Preparation::Config config, const Options& options);
  // Out of |cache_|, null where it has nothing that fits; and what is put into it.
  std::shared_ptr<const Model::Optimised> find_stored();
  void keep_plans(const PackedConstants& packed);
  struct Remade {
    std::mutex mutex;
    std::shared_ptr<const Graph> graph;
  };
  void remake(Remade& remade, const std::string& name, uint64_t bytes, void* out) const;
  // Of what plans are made of; empty, and why is noted, where they are not to be kept.
  std::string cache_key(const Options& options, const Preparation::Config& config);
  void log_creation(uint64_t started_ns) const;
  // |packed| may be null: gets what was packed.
  Result<std::unique_ptr<CompiledGraph>> compile(const std::shared_ptr<const Graph>& canonical,
                                                 const Plans& plans, const Progress& progress,
                                                 PackedConstants* packed = nullptr) const;
  Result<Planned> planned(std::unique_ptr<CompiledGraph> graph) const;
  // Of the nodes of |graph|, for precision "auto".
  Status choose_precisions(const std::shared_ptr<const Graph>& graph);
  Status check_batch() const;
  Status check_batch_of(const Graph& graph) const;
  Status check_named_precisions(const Graph& graph) const;
  // What compiling |graph| works with: |candidates|, and who runs the client's operators when the
  // graph has some.
  Result<CompileServices> services(std::vector<Candidate> candidates, const Graph& graph,
                                   const Progress& progress) const;
  // |untied|: dimensions of one name differ in size.
  Result<std::shared_ptr<const Planned>> variant(const std::shared_ptr<Plans>& plans,
                                                 const std::vector<ValuePtr>& inputs, bool untied,
                                                 const RunControl& control) const;
  Status attempt(const std::shared_ptr<Plans>& plans, const std::vector<ValuePtr>& inputs,
                 bool untied, const std::vector<OutputRequest>& requests, const RunControl& control,
                 std::vector<ValuePtr>& outputs) const;

  Status run_uncounted(const std::vector<ValuePtr>& inputs,
                       const std::vector<OutputRequest>& requests, const RunControl& control,
                       std::vector<ValuePtr>& outputs);
  // In parts of fewer rows than |failure| is of, where that gives the same.
  Status run_in_parts(const std::vector<ValuePtr>& inputs,
                      const std::vector<OutputRequest>& requests, const RunControl& control,
                      std::vector<ValuePtr>& outputs, Status failure);
  // With what cures failures on the way; |outputs| are empty after a failure.
  Status run_cured(const std::vector<ValuePtr>& inputs, bool untied,
                   const std::vector<OutputRequest>& requests, const RunControl& control,
                   std::vector<ValuePtr>& outputs);
  std::shared_ptr<Plans> current() const;
  Status open_providers();
  // Of |optimised|, which was made for the candidates, or, where that is null, of what passes make.
  Result<std::shared_ptr<Plans>> plan(std::vector<Candidate> candidates,
                                      std::shared_ptr<const Model::Optimised> optimised,
                                      const Progress& progress,
                                      PackedConstants* packed = nullptr) const;
  // With what cures failures on the way.
  Result<std::shared_ptr<Plans>> plan_for_all(std::shared_ptr<const Model::Optimised> optimised,
                                              const Progress& progress,
                                              PackedConstants* packed = nullptr);
  Result<std::shared_ptr<Plans>> without(Plans& plans, const Status& refusal,
                                         const RunControl& control) const;
  // What was done for one call, so that it is not done for ever.
  struct Cures {
    bool memory = false;          // caches were released
    std::vector<size_t> devices;  // that were opened again
  };
  Status cure(Status status, Cures& tried, const Progress& progress);
  void enter(pfrt_session_phase phase);
  void use(std::shared_ptr<Plans> plans);
  // Success means: try again with the current plans.
  Status recover(const std::shared_ptr<Plans>& plans, Status status, Cures& tried,
                 const RunControl& control);
  // Plans anew, where |plans| are from the cache and their file has been lost.
  Status leave_cache(const std::shared_ptr<Plans>& plans, const RunControl& control);

  // First, so that it goes last: executables and providers may call back into what it holds.
  std::shared_ptr<void> keep_;
  std::unique_ptr<Logger> own_logger_;  // by the session's level
  std::shared_ptr<const Model> model_;
  PackedStore* packed_ = nullptr;
  Sessions* all_ = nullptr;
  Logger* logger_ = nullptr;
  pfrt_compile_hints precision_ = 0;
  double max_error_ = 0;
  NamedPrecisions named_precisions_;
  std::vector<NodePrecision> node_precision_;       // of precision "auto"; empty = one for all
  std::shared_ptr<const Graph> node_precision_of_;  // whose nodes they are
  std::unique_ptr<Tuning> tuning_;                  // null: option "tune" is off
  uint64_t max_pixels_ = 0;
  bool fallback_ = true, halve_batch_ = true;
  bool strict_names_ = false;
  std::once_flag names_differ_;  // the warning
  AssignBy assign_ = AssignBy::kCost;
  RunRules rules_;
  bool env_allocators_ = true;
  const std::shared_ptr<RunStatistics> statistics_ = std::make_shared<RunStatistics>();
  std::unique_ptr<ProviderSet> provider_set_;
  std::unique_ptr<Preparation> preparation_;
  std::shared_ptr<CompiledCache> cache_;  // null: none, or not for this session
  std::string cache_key_, cache_note_;
  std::vector<std::string> pass_notes_;
  std::vector<std::string> provider_names_;
  std::vector<PortInfo> inputs_, outputs_;
  size_t required_inputs_ = 0;
  uint32_t max_threads_ = 0, num_threads_ = 0;
  std::shared_ptr<Executor> executor_;  // the environment's, while the session is created; or null
  std::unique_ptr<Profile> profile_;
  std::atomic<Profile*> open_profile_{nullptr};
  std::string profile_prefix_, profile_path_;
  bool write_at_end_ = false;  // of the session, where nobody has ended the profile
  uint64_t profile_number_ = 0;
  std::mutex profile_mutex_;  // guards profile_path_
  Progress progress_;         // of the session's creation: who may stop it until then
  std::atomic<pfrt_session_phase> phase_{PFRT_PHASE_INITIALIZING};  // but for runs under way
  std::timed_mutex recovery_mutex_;
  mutable std::mutex mutex_;  // guards plans_
  std::shared_ptr<Plans> plans_;
};

// A sentence.
std::string memory_note(const Session::MemoryReport& report);

}  // namespace pfrt
