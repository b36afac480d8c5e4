// SPDX-License-Identifier: Apache-2.0
//
// A model planned for its providers. run checks what it is given, takes the plan for the inputs'
// signature and runs it; safe from many threads at once. Where a provider fails, the graph is
// planned again without it (recovery.cc). A caller that hands results on asks model()->intact
// first, since a run over a file that is cut short reads zeros and ends without an error.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/base/made_once.h"
#include "core/exec/compiled_graph.h"
#include "core/model/model.h"
#include "core/model/ports.h"
#include "core/model/sample_source.h"
#include "core/options/options.h"
#include "core/provider/provider_set.h"
#include "core/session/client_pass.h"
#include "core/session/compiled_cache.h"
#include "core/session/prepare.h"
#include "core/session/session_profile.h"
#include "core/session/states.h"
#include "core/verify/node_precision.h"

namespace pfrt {

class Devices;
class Runs;
class Sessions;
struct RunRequest;

// The name of |phase|, such as "Ready"; empty where it is unknown.
std::string_view phase_name(pfrt_session_phase phase);

class Session : public std::enable_shared_from_this<Session> {
 public:
  ~Session();
  struct Context {
    std::vector<ProviderSource> providers;
    PackedStore* packed = nullptr;
    Sessions* all = nullptr;     // of the environment; may be null
    Devices* devices = nullptr;  // those of the environment
    Runs* runs = nullptr;        // of the environment
    Logger* logger = nullptr;
    OperatorSet::Ptr operators;                             // beside the built-in ones; may be null
    std::shared_ptr<CompiledCache> cache;                   // null: none
    std::vector<std::shared_ptr<const ClientPass>> passes;  // in order
    std::vector<NamedValues> samples;                       // inputs to verify passes with, too
    std::unique_ptr<SampleSource> sample_source;  // more of them, read by create; may be null
    pfrt_log_fn log = nullptr;                    // null: lines go to |logger|
    void* log_user = nullptr;
    std::shared_ptr<void> keep_log;      // lives until |log| is called no more
    uint32_t max_threads = 0;            // of the environment; 0 = no limit
    std::shared_ptr<Executor> executor;  // null: the process's own threads
    std::shared_ptr<void> keep;          // the environment, which must live as long as the session
  };
  static Result<std::shared_ptr<Session>> create(std::shared_ptr<const Model> model,
                                                 const Options& options,
                                                 const std::vector<std::string>& extra_outputs,
                                                 Context context);
  // The key of the session's entry in a cache, without a look-up; UNSUPPORTED where it would have
  // no entry.
  static Result<std::string> key(std::shared_ptr<const Model> model, const Options& options,
                                 Context context);

  const std::vector<PortInfo>& inputs() const { return inputs_; }
  const std::vector<PortInfo>& outputs() const { return outputs_; }
  Logger& logger() const { return *logger_; }
  const ProviderSet& provider_set() const { return *provider_set_; }
  const std::shared_ptr<const Model>& model() const { return model_; }
  // Bytes of an output whose dimensions are all numbers, as they are listed.
  std::optional<uint64_t> output_bytes(size_t index) const { return output_bytes_[index]; }
  // Index of the first output beyond the model's own.
  size_t first_extra_output() const { return model_->signature().outputs.size(); }
  // The graph of the main plan, until providers fail.
  std::shared_ptr<const Graph> planned_graph() const;
  Runs& runs() const { return *runs_; }
  // Whether its runs take memory from the environment's allocator.
  bool env_allocators() const { return env_allocators_; }
  // Takes a provider that was set aside into use again. NOT_FOUND where the session has none of
  // this name. Where its device does not open or cannot be planned for, returns that error and
  // leaves the provider set aside; likewise where |progress| stops it.
  Status readmit(std::string_view provider, const Progress& progress);
  // Threads of a run that asks for |asked| (0 = the session's number), at most |available| (0 =
  // those that the process may use now).
  uint32_t width(int64_t asked, uint32_t available = 0) const;
  // The profile that runs are recorded in; null = none.
  Profile* profile() const { return profile_.recording(); }
  // Start of the profile, on os::monotonic_ns; 0 = the session's option is off.
  uint64_t profiling_start_ns() const { return profile_.start_ns(); }
  // Writes and closes the profile and returns the file's path, and the same path when called again.
  // Empty where the session's option is off. On failure the profile stays open.
  Result<std::string_view> end_profiling() { return profile_.end(*model_); }

  // Runs at once, on this thread (run.h). The results are by output, null where unwanted.
  Result<std::vector<ValuePtr>> run(RunRequest request);

  const RunStatistics& statistics() const { return *statistics_; }
  States& states() { return states_; }

  // The open device of provider |name|, which has memory of its own; an empty |name| means the
  // first such provider.
  Result<std::shared_ptr<Provider>> device_of(std::string_view name) const;
  // Whether |device| is that of an open provider of the session.
  bool uses(const Device& device) const;

  struct Explanation {
    std::vector<StepReport> steps;  // started_ns counts from the first of them
    std::vector<CounterReport> counters;
    std::vector<std::string> notes;
  };
  Explanation explain();

  // Drops what can be made again; runs under way keep what they use. Returns the bytes of blocks
  // freed.
  uint64_t release_memory();
  // Frees idle blocks that no run has used since |given_ns|; returns their bytes.
  uint64_t trim(uint64_t given_ns = UINT64_MAX);
  struct MemoryReport : MemoryUse {
    uint64_t weights = 0;
    uint64_t states = 0, device_states = 0;  // values of states, and room for the next ones
  };
  MemoryReport memory_report() const;
  pfrt_session_phase phase() const;

 private:
  friend class Run;
  struct Planned {
    std::shared_ptr<CompiledGraph> graph;
    std::vector<size_t> order;  // by input of |graph|: its place among the session's inputs
  };
  // A run's departures from what the main plan is made for.
  struct Variant {
    std::vector<bool> fed;  // by initializer that is listed as an input; empty: none is fed
    bool untied = false;    // equal names tie no dimensions
    std::vector<const Device*> refused;  // candidates that refuse this request

    bool operator==(const Variant&) const = default;
    bool is_main() const { return fed.empty() && !untied && refused.empty(); }
  };
  // Plans that runs use until a provider fails.
  struct Plans {
    std::vector<Candidate> candidates;
    std::shared_ptr<const OptimisedGraph> optimised;  // of the main plan
    Planned main;
    MadeOnce<Variant, std::shared_ptr<const Planned>> variants{8};

    // Calls |fn| with the graph of each plan.
    template <typename Fn>
    void each(Fn fn) const {
      fn(*main.graph);
      variants.each([&](const Variant&, const auto& planned) { fn(*planned->graph); });
    }
  };

  Session() = default;
  // Computes outputs by the current plans, and counts the run.
  Status execute(const std::vector<ValuePtr>& inputs, const std::vector<OutputRequest>& requests,
                 const RunControl& control, std::vector<ValuePtr>& outputs);
  // Opens the providers of a new session, and tells how its graph is to be prepared.
  static Result<std::pair<std::shared_ptr<Session>, Preparation::Config>> begin(
      std::shared_ptr<const Model> model, const Options& options,
      const std::vector<std::string>& extra_outputs, Context context, Progress progress);
  // The logger of scopes in which this session's function takes the lines; null: it has none.
  const Logger* log_taker() const { return takes_log_ ? own_logger_.get() : nullptr; }
  void forget_failure() {
    if (phase_.load(std::memory_order_relaxed) != PFRT_PHASE_READY) enter(PFRT_PHASE_READY);
  }
  Status take_options(const Options& options);
  // Sets up tuning with |cache_|, which may be null.
  Status take_tuning(const Options& options);
  void list_inputs();
  void list_outputs();
  // Makes the first plans, with precision "auto" after choosing the cheapest arithmetic that is
  // exact enough.
  Status make_plans(Preparation::Config config, const Options& options);
  // find_stored reads plans from |cache_|, null where it has none that fit; keep_plans stores them.
  std::shared_ptr<const OptimisedGraph> find_stored();
  void keep_plans(const PackedConstants& packed);
  struct Remade {
    std::mutex mutex;
    std::shared_ptr<const Graph> graph;
  };
  void remake(Remade& remade, const std::string& name, uint64_t bytes, void* out) const;
  // The key of everything plans depend on. Empty, with a note of the reason, where they are not
  // stored.
  std::string cache_key(const Options& options, const Preparation::Config& config);
  void log_creation(uint64_t started_ns) const;
  // |packed| receives the packed constants; may be null.
  Result<Planned> compile(const OptimisedGraph& optimised, std::vector<Candidate> candidates,
                          const Progress& progress, PackedConstants* packed = nullptr) const;
  Result<Planned> planned(std::unique_ptr<CompiledGraph> graph) const;
  // Chooses the precisions of the nodes of |graph|, for precision "auto".
  Status choose_precisions(const std::shared_ptr<const Graph>& graph);
  Status check_batch() const;
  Status check_batch_of(const Graph& graph) const;
  Status check_named_precisions(const Graph& graph) const;
  // Services for compiling |graph|: |candidates|, and the provider of the client's operators when
  // the graph has some.
  Result<CompileServices> services(std::vector<Candidate> candidates, const Graph& graph,
                                   const Progress& progress) const;
  // |untied| means that dimensions of one name differ in size.
  Variant variant_of(const std::vector<ValuePtr>& inputs, bool untied) const;
  // The plan for |variant|. |refusals| says why each of its providers refused.
  Result<std::shared_ptr<const Planned>> plan_for(const std::shared_ptr<Plans>& plans,
                                                  const Variant& variant,
                                                  const std::vector<Status>& refusals,
                                                  const RunControl& control) const;
  Result<Planned> plan_variant(const Plans& plans, const Variant& variant,
                               const std::vector<Status>& refusals, const Progress& progress) const;
  Status attempt(const std::shared_ptr<Plans>& plans, const Variant& variant,
                 const std::vector<Status>& refusals, const std::vector<ValuePtr>& inputs,
                 const std::vector<OutputRequest>& requests, const RunControl& control,
                 std::vector<ValuePtr>& outputs) const;

  Status run_uncounted(const std::vector<ValuePtr>& inputs,
                       const std::vector<OutputRequest>& requests, const RunControl& control,
                       std::vector<ValuePtr>& outputs);
  // Runs in parts of fewer rows than those |failure| came from, where that gives the same results.
  Status run_in_parts(const std::vector<ValuePtr>& inputs,
                      const std::vector<OutputRequest>& requests, const RunControl& control,
                      std::vector<ValuePtr>& outputs, Status failure);
  // Runs, and recovers from failures on the way; |outputs| are empty after a failure.
  Status run_with_recovery(const std::vector<ValuePtr>& inputs, bool untied,
                           const std::vector<OutputRequest>& requests, const RunControl& control,
                           std::vector<ValuePtr>& outputs);
  std::shared_ptr<Plans> current() const;
  Status open_providers();
  // Plans |optimised|, which was made for the candidates; where it is null, the passes make it.
  Result<std::shared_ptr<Plans>> plan(std::vector<Candidate> candidates,
                                      std::shared_ptr<const OptimisedGraph> optimised,
                                      const Progress& progress,
                                      PackedConstants* packed = nullptr) const;
  // Plans for all providers, and recovers from failures on the way.
  Result<std::shared_ptr<Plans>> plan_for_all(std::shared_ptr<const OptimisedGraph> optimised,
                                              const Progress& progress,
                                              PackedConstants* packed = nullptr);
  // Takes the provider that |refusal| names out of the plan for a request. Fails with |refusal|
  // where nobody else could take over.
  Status leave_out(const std::shared_ptr<Plans>& plans, Status refusal, Variant& variant,
                   std::vector<Status>& refusals, const RunControl& control) const;
  // Remedies tried during one call, so that none is tried without end.
  struct RecoveryAttempts {
    bool memory = false;          // whether caches were released
    std::vector<size_t> devices;  // providers whose devices were opened again
  };
  Status prepare_retry(Status status, RecoveryAttempts& tried, const Progress& progress);
  void enter(pfrt_session_phase phase);
  void use(std::shared_ptr<Plans> plans);
  // Success means that the call is to be tried again with the current plans.
  Status recover(const std::shared_ptr<Plans>& plans, Status status, RecoveryAttempts& tried,
                 const RunControl& control);
  // Plans anew where |plans| are from the cache and their file has been lost.
  Status leave_cache(const std::shared_ptr<Plans>& plans, const RunControl& control);

  // Is declared first and so destroyed last: executables and providers may call back into what it
  // holds.
  std::shared_ptr<void> keep_;
  std::shared_ptr<void> keep_log_;      // may be null
  bool takes_log_ = false;              // |own_logger_| has a function of its own
  std::unique_ptr<Logger> own_logger_;  // by the session's level
  std::shared_ptr<const Model> model_;
  PackedStore* packed_ = nullptr;
  Sessions* all_ = nullptr;
  Runs* runs_ = nullptr;
  Logger* logger_ = nullptr;
  pfrt_compile_hints precision_ = 0;
  double max_error_ = 0;
  NamedPrecisions named_precisions_;
  std::vector<NodePrecision> node_precision_;       // of precision "auto"; empty = one for all
  std::shared_ptr<const Graph> node_precision_of_;  // the graph of these nodes
  std::unique_ptr<Tuning> tuning_;                  // null: option "tune" is off
  uint64_t max_pixels_ = 0;
  bool fallback_ = true, halve_batch_ = true;
  bool strict_names_ = false;
  bool flush_denormals_ = false;
  std::once_flag names_differ_;  // guards the warning
  AssignBy assign_ = AssignBy::kCost;
  RunRules rules_;
  bool env_allocators_ = true;
  const std::shared_ptr<RunStatistics> statistics_ = std::make_shared<RunStatistics>();
  std::unique_ptr<ProviderSet> provider_set_;
  std::unique_ptr<Preparation> preparation_;
  std::shared_ptr<CompiledCache> cache_;  // null: none, or not for this session
  std::string cache_key_, cache_note_;
  std::vector<std::string> pass_notes_;
  std::vector<PortInfo> inputs_, outputs_;
  std::vector<std::optional<uint64_t>> output_bytes_;
  size_t required_inputs_ = 0;
  uint32_t max_threads_ = 0, num_threads_ = 0;
  std::shared_ptr<Executor> executor_;  // the environment's, while the session is created; or null
  SessionProfile profile_;
  States states_;
  Progress progress_;  // of the session's creation, which may be stopped until it is done
  std::unique_ptr<SampleSource> sample_source_;  // while the session is created; or null
  std::atomic<pfrt_session_phase> phase_{PFRT_PHASE_INITIALIZING};  // without runs under way
  std::timed_mutex recovery_mutex_;
  mutable std::mutex mutex_;  // guards plans_
  std::shared_ptr<Plans> plans_;
};

// A progress that whatever stops the run stops too.
Progress progress_of(const RunControl& control);
// A sentence about the session's memory.
std::string memory_note(const Session::MemoryReport& report);

}  // namespace pfrt
