// SPDX-License-Identifier: Apache-2.0
//
// Options of sessions and runs. Plain values; RunOptions may be cancelled from any thread.
#pragma once

#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <pyflame_rt/env.hpp>
#include <pyflame_rt/state.hpp>
#include <pyflame_rt/tensor.hpp>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pyflame_rt {

// Degree of graph optimisation: None runs the model's own nodes, a step for each; Basic folds
// constants and removes dead code, Extended also fuses, All also changes layouts. Each may change
// the order of sums, so results may differ in the last bits.
enum class OptLevel : int32_t { None = 0, Basic = 1, Extended = 2, All = 3 };

// Hears the progress of long work, from 0 to 1, and its present stage. Returning false, or
// throwing, stops it: CancelledError, or what was thrown.
using Progress = std::function<bool(double fraction, const std::string& stage)>;

// Options of a session.
struct SessionOptions {
  // Inputs of one run, by name.
  using Sample = std::unordered_map<std::string, Tensor>;

  std::string device = "cpu";  // "cpu", "wse", "wse2", "wse3": short for a provider list
  int num_threads = 0;         // 0 = as many as the process may use
  // Times every step and keeps every run until InferenceSession::end_profiling(); explain() has the
  // last run's times.
  bool enable_profiling = false;
  // Prefix of the profile's path, PREFIX_YYYY-MM-DD_HH-MM-SS_P_N.json. With another prefix than the
  // default, a profile that nobody ended is written when the session is destroyed.
  std::string profile_file_prefix = kProfileFilePrefix;
  // Default of profile_file_prefix.
  static constexpr const char* kProfileFilePrefix = "pyflame_rt_profile";
  // "sequential", or "parallel" to run independent steps at once.
  std::string execution_mode = "sequential";
  // Degree of graph optimisation.
  OptLevel optimization_level = OptLevel::Extended;
  // Logs the changes of each pass.
  bool verbose_optimization = false;
  std::string log_level = "warning";  // "debug", "info", "warning", "error", "off"
  // Provider names, long or short as "cpu"; empty = the providers of |device|. A node goes to the
  // provider that estimates the lowest cost; the order decides between equal costs, and which
  // provider takes over where one fails.
  std::vector<std::string> providers;
  // "cost" gives a node to whoever estimates the lowest cost, "priority" to the first of
  // |providers| that accepts it.
  std::string assign = "cost";
  std::vector<std::string> skip_passes;  // optimisation passes to leave out, by name
  // Whether the graph is run before and after each pass, so that a rewrite that changes results is
  // found, undone and named.
  bool verify = false;
  std::string precision = "fp32";  // "ieee", "fp32", "fast", "bf16" or "auto"
  double max_error = 0;            // of precision "auto"; 0 = the default
  // Precision of single nodes, as "NAME=bf16", by the name of the node or of a value it makes.
  std::vector<std::string> node_precision;
  // "threads" gives the same bits on any number of threads. "batch" also gives the same bits for a
  // row of a batch by itself and among any others, in plain arithmetic.
  std::string deterministic = "threads";
  // "on" refines block sizes by measurement and stores the results in |cache_dir|, if there is one;
  // "cached" uses stored results and measures nothing.
  std::string tune = "off";
  // Seconds that tune "on" may measure for in all.
  std::optional<double> tune_budget_s;
  // Block sizes that tune "on" measures: "race", "random" or "model".
  std::optional<std::string> tune_search;
  // Block sizes that "random" and "model" measure after the first ten.
  std::optional<int64_t> tune_iterations;
  // Runs by which tune "on" measures a block size.
  std::optional<int64_t> tune_repeats;
  // Folder where compiled models are kept, so that sessions in other processes start from them
  // (cache/binary_cache.hpp). "off" = nowhere; empty = that of PFRT_CACHE_DIR, if it is set.
  std::string cache_dir;
  bool fallback = true;                    // a failing provider's nodes go to the next one
  std::vector<std::string> extra_outputs;  // inner values to return after the model's outputs
  // Whether values that are not in use at the same time share memory, and whether the block that a
  // run works in is kept for the next.
  bool enable_mem_reuse = true, enable_mem_pattern = true;
  // Whether a run that does not fit in memory is done in parts of fewer rows of its batch, where
  // the graph computes each row by itself. It needs fallback, and a run without a state.
  bool halve_batch = true;
  // Whether a run is refused whose inputs have different sizes for dimensions of one name.
  // Otherwise there is one warning, and such a run takes a plan in which equal names mean nothing.
  // With a state it is refused in any case.
  bool strict_dimension_names = false;
  // Whether memory comes from the environment's allocator, where it has one.
  bool use_env_allocators = true;
  // Whether runs take denormal numbers for zero where they read and compute them.
  bool set_denormal_as_zero = false;
  std::optional<int64_t> image_max_pixels;  // larger images are refused by ImageDecoder
  int64_t create_timeout_ms = 0;            // after which making the session fails; 0 = never
  // A device that is lost again within this time of being opened anew is given up.
  std::optional<int64_t> device_reopen_ms;
  // Inputs on which precision "auto" is measured in place of made-up ones, and verify compares
  // besides those.
  std::vector<Sample> samples;
  // Gives sample |index| in place of |samples|, or nothing behind the last, so that they need not
  // be in memory at once. Asked while the session is made, in order from 0 on, many times over;
  // what it throws comes out of the session's constructor.
  std::function<std::optional<Sample>(size_t index)> sample_source;
  // Called with the progress of making the session; none = nobody hears.
  Progress progress;
  // Takes the log lines that calls of the session cause, in place of the environment's logger, by
  // |log_level|; none = that one. The session keeps it.
  Environment::Logger logger;
  std::map<std::string, std::string>
      extra;  // further keys of the library's or a provider's schema, as text

  // Returns a sentence for each fault; empty when a session would take the options.
  std::vector<std::string> validate() const;
};

namespace detail {

// Sets options of one kind; failures go to |faults|, or are thrown where there is none.
class OptionSetter {
 public:
  OptionSetter(pfrt_options_kind kind, std::vector<std::string>* faults) : faults_(faults) {
    check(api().options->create(kind, options_.out()));
  }

  void set(const char* key, bool value) { done(api().options->set_bool(get(), text(key), value)); }
  void set(const char* key, int64_t value) {
    done(api().options->set_int(get(), text(key), value));
  }
  void set(const char* key, double value) {
    done(api().options->set_float(get(), text(key), value));
  }
  void set(const char* key, const std::string& value) {
    done(api().options->set_string(get(), text(key), text(value)));
  }
  void set(const char* key, const std::vector<std::string>& values) {
    std::vector<pfrt_string> texts;
    texts.reserve(values.size());
    for (const std::string& value : values) texts.push_back(text(value));
    done(api().options->set_strings(get(), text(key), texts.data(), texts.size()));
  }
  template <typename T>
  void set_given(const char* key, const std::optional<T>& value) {
    if (value) set(key, *value);
  }
  void set_text(const std::string& key, const std::string& value) {
    done(api().options->set_text(get(), text(key), text(value)));
  }
  const Handle<pfrt_options>& handle() const noexcept { return options_; }

 private:
  pfrt_options* get() const noexcept { return options_.get(); }
  void done(pfrt_status* status) {
    if (faults_ == nullptr) return check(status);
    if (status != nullptr) faults_->push_back(Failure(status).message);
  }
  Handle<pfrt_options> options_;
  std::vector<std::string>* faults_;
};

// Tells a function of the progress of one call, and keeps what it throws.
class ProgressCall {
 public:
  // Both outlive the object.
  ProgressCall(pfrt_options* options, const Progress& progress)
      : options_(options), progress_(progress) {
    if (progress) check(api().options->set_progress(options, &hear, this));
  }
  ~ProgressCall() {
    if (progress_) api().status->release(api().options->set_progress(options_, nullptr, nullptr));
  }
  ProgressCall(const ProgressCall&) = delete;
  ProgressCall& operator=(const ProgressCall&) = delete;

  // Takes over |status|.
  void finish(PFRT_OWN pfrt_status* status) const {
    if (thrown_) {
      api().status->release(status);
      std::rethrow_exception(thrown_);
    }
    check(status);
  }

 private:
  static void hear(void* user, double fraction, pfrt_string stage) {
    auto* const self = static_cast<ProgressCall*>(user);
    bool go_on = false;
    try {
      go_on = !self->thrown_ && self->progress_(fraction, str(stage));
    } catch (...) {
      self->thrown_ = std::current_exception();
    }
    if (!go_on) api().options->cancel(self->options_);
  }
  pfrt_options* const options_;
  const Progress& progress_;
  std::exception_ptr thrown_;
};

// A sample in the form of the library, which borrows from |sample|.
class SampleInC {
 public:
  explicit SampleInC(const SessionOptions::Sample& sample) {
    for (const auto& [name, tensor] : sample) {
      names_.push_back(text(name));
      values_.push_back(tensor.handle());
    }
  }
  // Lives as long as the object.
  pfrt_sample get() const {
    return {sizeof(pfrt_sample), 0, names_.data(), values_.data(), names_.size()};
  }

 private:
  std::vector<pfrt_string> names_;
  std::vector<pfrt_value*> values_;
};

// The samples of a function of the program, one at a time, and what it throws.
class SourceInC {
 public:
  // |from| outlives the object.
  explicit SourceInC(const std::function<std::optional<SessionOptions::Sample>(size_t)>& from)
      : from_(from) {
    source_.struct_size = sizeof(source_);
    source_.user = this;
    source_.next = [](void* user, pfrt_sample* out) { return of(user).next(out); };
    source_.rewind = [](void* user) {
      of(user).index_ = 0;
      return pfrt_code{PFRT_CODE_OK};
    };
  }
  SourceInC(const SourceInC&) = delete;
  SourceInC& operator=(const SourceInC&) = delete;

  const pfrt_sample_source* get() const { return from_ ? &source_ : nullptr; }
  void rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  static SourceInC& of(void* user) { return *static_cast<SourceInC*>(user); }
  pfrt_code next(pfrt_sample* out) noexcept {
    try {
      in_c_.reset();
      sample_ = from_(index_++);
      if (!sample_) return PFRT_CODE_OK;
      in_c_.emplace(*sample_);
      const pfrt_sample sample = in_c_->get();
      out->names = sample.names;
      out->values = sample.values;
      out->count = sample.count;
      return PFRT_CODE_OK;
    } catch (...) {
      thrown_ = std::current_exception();
      return PFRT_CODE_INPUT;
    }
  }

  const std::function<std::optional<SessionOptions::Sample>(size_t)>& from_;
  pfrt_sample_source source_{};
  size_t index_ = 0;
  std::optional<SessionOptions::Sample> sample_;
  std::optional<SampleInC> in_c_;
  std::exception_ptr thrown_;
};

// Makes |logger| take the lines of a session; the session keeps a copy of it.
inline void set_log(pfrt_session_desc& desc, const Environment::Logger& logger) {
  if (!logger) return;
  desc.log_user = new Environment::Logger(logger);
  desc.log = [](void* user, pfrt_log_level level, pfrt_string message) {
    try {
      (*static_cast<const Environment::Logger*>(user))(static_cast<LogLevel>(level), str(message));
    } catch (...) {
      // Nothing may unwind through the C library; a logger that throws loses its line.
    }
  };
  desc.log_release = [](void* user) { delete static_cast<Environment::Logger*>(user); };
}

inline Handle<pfrt_options> to_c(const SessionOptions& options, std::vector<std::string>* faults) {
  static constexpr const char* kLevels[] = {"none", "basic", "extended", "all"};
  OptionSetter c(PFRT_OPTIONS_SESSION, faults);
  // An empty provider list means "cpu" anyway; with a list, only another device can disagree.
  if (options.device != "cpu" || options.providers.empty()) c.set("device", options.device);
  if (!options.providers.empty()) c.set("providers", options.providers);
  c.set("num_threads", int64_t{options.num_threads});
  c.set("execution_mode", options.execution_mode);
  const auto level = static_cast<size_t>(options.optimization_level);
  c.set("optimization_level", level < 4 ? std::string(kLevels[level]) : std::to_string(level));
  c.set("verbose_optimization", options.verbose_optimization);
  c.set("enable_profiling", options.enable_profiling);
  if (options.profile_file_prefix != SessionOptions::kProfileFilePrefix)
    c.set("profile_file_prefix", options.profile_file_prefix);
  c.set("log_level", options.log_level);
  c.set("assign", options.assign);
  if (!options.skip_passes.empty()) c.set("skip_passes", options.skip_passes);
  c.set("verify", std::string(options.verify ? "on" : "off"));
  c.set("precision", options.precision);
  if (!options.node_precision.empty()) c.set("node_precision", options.node_precision);
  if (options.max_error != 0) c.set("max_error", options.max_error);
  c.set("deterministic", options.deterministic);
  c.set("tune", options.tune);
  c.set_given("tune_budget_s", options.tune_budget_s);
  c.set_given("tune_search", options.tune_search);
  c.set_given("tune_iterations", options.tune_iterations);
  c.set_given("tune_repeats", options.tune_repeats);
  if (!options.cache_dir.empty()) c.set("cache_dir", options.cache_dir);
  c.set("session.fallback", std::string(options.fallback ? "on" : "off"));
  c.set("session.halve_batch", std::string(options.halve_batch ? "on" : "off"));
  c.set("enable_mem_reuse", options.enable_mem_reuse);
  c.set("enable_mem_pattern", options.enable_mem_pattern);
  c.set("strict_dimension_names", options.strict_dimension_names);
  c.set("session.use_env_allocators", options.use_env_allocators);
  c.set("session.set_denormal_as_zero", options.set_denormal_as_zero);
  c.set_given("image.max_pixels", options.image_max_pixels);
  c.set("create_timeout_ms", options.create_timeout_ms);
  c.set_given("session.device_reopen_ms", options.device_reopen_ms);
  for (const auto& [key, value] : options.extra) c.set_text(key, value);
  return c.handle();
}

}  // namespace detail

inline std::vector<std::string> SessionOptions::validate() const {
  std::vector<std::string> faults;
  (void)detail::to_c(*this, &faults);
  std::string known;
  for (const ProviderInfo& provider : Environment::instance().providers())
    known += (known.empty() ? "" : ",") + provider.devices;
  if (("," + known + ",").find("," + device + ",") == std::string::npos)
    faults.push_back("no provider opens device '" + device + "'; devices are " + known);
  return faults;
}

namespace detail {

// Signals between a RunOptions and its runs. Asynchronous runs keep them.
struct RunSignals {
  uint32_t cancelled = 0;  // written and read atomically
  std::mutex mutex;
  std::exception_ptr thrown;  // by the observer
};

inline pfrt_log_level to_log_level(const std::string& word) {
  static constexpr const char* kWords[] = {"", "debug", "info", "warning", "error", "off"};
  for (pfrt_log_level level = PFRT_LOG_UNSET; level <= PFRT_LOG_OFF; ++level) {
    if (word == kWords[level]) return level;
  }
  throw InvalidArgumentError("running: log_level is '" + word +
                             "'; this version knows debug info warning error off");
}

}  // namespace detail

// Options of one or more runs. Set fields before the first run that uses them; runs on several
// threads may share the object. A copy has the same fields and is cancelled on its own.
class RunOptions {
 public:
  RunOptions() = default;
  // Copies the fields; a cancelled object's copy is not cancelled.
  RunOptions(const RunOptions& other)
      : tag(other.tag),
        log_level(other.log_level),
        timeout_ms(other.timeout_ms),
        num_threads(other.num_threads),
        memory_limit(other.memory_limit),
        priority(other.priority),
        state(other.state),
        keeps_state(other.keeps_state),
        observer(other.observer) {}
  // Copies the fields; this object stays cancelled, or not, as it was.
  RunOptions& operator=(const RunOptions& other) {
    if (this == &other) return *this;
    tag = other.tag;
    log_level = other.log_level;
    timeout_ms = other.timeout_ms;
    num_threads = other.num_threads;
    memory_limit = other.memory_limit;
    priority = other.priority;
    state = other.state;
    keeps_state = other.keeps_state;
    observer = other.observer;
    return *this;
  }
  ~RunOptions() = default;

  // A name for the run in logs and profiles.
  std::string tag;
  std::string log_level;   // "" = the session's
  int64_t timeout_ms = 0;  // 0 = none
  int num_threads = 0;     // 0 = the session's
  // Bytes of host memory that a run may take for its work and its results; 0 = no limit but the
  // environment's.
  int64_t memory_limit = 0;
  // Asynchronous runs that wait are started in order of priority, the highest first.
  int64_t priority = 0;
  // State that runs take inputs from and leave their own values in; none = no state.
  State state;
  // The runs only read the state, several of them at once, and return what they make. A run without
  // a state is then an InvalidArgumentError.
  bool keeps_state = false;
  // Called on the run's thread with each of SessionOptions::extra_outputs once the run has computed
  // it, whether the run returns it or not. The tensor is the run's: copy it to keep it. An
  // exception that it throws comes out of the run (an asynchronous one: CancelledError). This
  // object has to live until the runs that use it are over. None = no observer.
  std::function<void(const std::string& name, const Tensor& value)> observer;

  // Stops runs that use this object, now and later, until reset(). Safe on any thread.
  void cancel() noexcept { __atomic_store_n(&signals_->cancelled, 1u, __ATOMIC_RELAXED); }
  // Lets runs use the object again after cancel().
  void reset() noexcept { __atomic_store_n(&signals_->cancelled, 0u, __ATOMIC_RELAXED); }

  // The fields as the C API takes them, which last as long as the object and its fields. Throws
  // InvalidArgumentError for a word that is no log level.
  pfrt_run_desc desc() const {
    pfrt_run_desc c{};
    c.struct_size = sizeof(c);
    c.log_level = detail::to_log_level(log_level);
    c.cancel = &signals_->cancelled;
    c.timeout_ms = timeout_ms;
    c.num_threads = num_threads;
    c.priority = priority;
    c.memory_limit = memory_limit;
    c.tag = detail::text(tag);
    c.flags = keeps_state ? uint64_t{PFRT_RUN_KEEPS_STATE} : 0;
    c.state = state.handle();
    if (observer) c.observe = &hear;
    c.observe_user = const_cast<RunOptions*>(this);
    return c;
  }
  // Returns run(pointer to desc()), and throws what the observer threw.
  template <class Run>
  auto call(Run&& run) const {
    const pfrt_run_desc c = desc();
    try {
      return run(&c);
    } catch (const PyFlameRTError&) {
      if (const std::exception_ptr thrown = take_thrown()) std::rethrow_exception(thrown);
      throw;
    }
  }
  // Returns an object that an asynchronous run has to hold until it is over.
  std::shared_ptr<const void> keep() const noexcept { return signals_; }

 private:
  static pfrt_code hear(void* user, pfrt_string name, pfrt_value* value) noexcept;
  std::exception_ptr take_thrown() const {
    const std::lock_guard<std::mutex> lock(signals_->mutex);
    return std::exchange(signals_->thrown, nullptr);
  }

  const std::shared_ptr<detail::RunSignals> signals_ = std::make_shared<detail::RunSignals>();
};

inline pfrt_code RunOptions::hear(void* user, pfrt_string name, pfrt_value* value) noexcept {
  const auto& self = *static_cast<const RunOptions*>(user);
  try {
    self.observer(detail::str(name), Tensor::from_handle(detail::Handle<pfrt_value>::share(value)));
    return PFRT_CODE_OK;
  } catch (...) {
    const std::lock_guard<std::mutex> lock(self.signals_->mutex);
    if (!self.signals_->thrown) self.signals_->thrown = std::current_exception();
    return PFRT_CODE_CANCELLED;
  }
}

}  // namespace pyflame_rt
