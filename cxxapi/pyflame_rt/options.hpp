// SPDX-License-Identifier: Apache-2.0
//
// Options of sessions and runs. Plain values; RunOptions may be cancelled from any thread.
#pragma once

#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <pyflame_rt/env.hpp>
#include <pyflame_rt/state.hpp>
#include <pyflame_rt/tensor.hpp>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pyflame_rt {

// How far a session optimises its graph: None as the model has it, and a step for each node; Basic
// folds constants and removes dead code, Extended also fuses, All also moves layouts. Sums may be
// made in another order at each: results then differ in the last bits.
enum class OptLevel : int32_t { None = 0, Basic = 1, Extended = 2, All = 3 };

// Options of a session.
struct SessionOptions {
  std::string device = "cpu";  // "cpu", "wse", "wse2", "wse3": short for a provider list
  int num_threads = 0;         // 0 = as many as the process may use
  // Time every step and keep every run until InferenceSession::end_profiling(); explain() has the
  // last run's times.
  bool enable_profiling = false;
  // Where the profile goes: PREFIX_YYYY-MM-DD_HH-MM-SS_P_N.json. Where this is not the default, a
  // profile that nobody ended is written when the session goes.
  std::string profile_file_prefix = kProfileFilePrefix;
  // The default of that.
  static constexpr const char* kProfileFilePrefix = "pyflame_rt_profile";
  // "sequential", or "parallel" for independent steps at once.
  std::string execution_mode = "sequential";
  // How far the graph is optimised.
  OptLevel optimization_level = OptLevel::Extended;
  // Log what each pass did.
  bool verbose_optimization = false;
  std::string log_level = "warning";  // "debug", "info", "warning", "error", "off"
  // By their names, or short, as "cpu"; empty = those of |device|. A node goes to the one that
  // estimates the lowest cost; the order decides between equal ones, and who takes over where one
  // fails.
  std::vector<std::string> providers;
  std::string precision = "fp32";  // "ieee", "fp32", "fast", "bf16" or "auto"
  double max_error = 0;            // of precision "auto"; 0 = the default
  // "threads": the same bits on any number of threads; "batch": also of each row of a batch, by
  // itself or among any others, in plain arithmetic.
  std::string deterministic = "threads";
  // "on": blockings are refined by measurement, and what is found goes to |cache_dir|, where there
  // is one; "cached": what is found there is used, and nothing is measured. How much is measured is
  // for |extra|: "tune_budget_s", "tune_search", "tune_iterations" and "tune_repeats".
  std::string tune = "off";
  // Folder where compiled models are kept, for sessions in other processes to start from
  // (cache/binary_cache.hpp). "off" = nowhere; empty = that of PFRT_CACHE_DIR, if it is set.
  std::string cache_dir;
  bool fallback = true;                    // a failing provider's nodes go to the next one
  std::vector<std::string> extra_outputs;  // inner values to return after the model's outputs
  // Whether values that are not in use at the same time lie in the same memory, and whether the
  // block that runs work in is kept for the next.
  bool enable_mem_reuse = true, enable_mem_pattern = true;
  // Whether a run that memory does not suffice for is done in parts of fewer rows of its batch,
  // where the graph computes each row by itself. Not without fallback, nor with a state.
  bool halve_batch = true;
  // Whether a run is refused whose inputs have other sizes for dimensions of one name; else there
  // is one warning, and such runs take a plan in which names tie nothing. With a state they are
  // refused all the same.
  bool strict_dimension_names = false;
  // Inputs, by name, on which precision "auto" is measured in place of inputs made up.
  std::vector<std::unordered_map<std::string, Tensor>> samples;
  std::map<std::string, std::string>
      extra;  // further keys of the library's or a provider's schema, as text

  // One sentence a fault; empty when a session would take them.
  std::vector<std::string> validate() const;
};

namespace detail {

// Sets options of one kind; failures go to |faults|, or are thrown where there is none.
class OptionSetter {
 public:
  OptionSetter(pfrt_options_kind kind, std::vector<std::string>* faults) : faults_(faults) {
    check(api().options->create(kind, options_.out()));
  }
  OptionSetter(Handle<pfrt_options> options, std::vector<std::string>* faults)
      : options_(std::move(options)), faults_(faults) {}

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

inline Handle<pfrt_options> to_c(const SessionOptions& options, std::vector<std::string>* faults) {
  static constexpr const char* kLevels[] = {"none", "basic", "extended", "all"};
  OptionSetter c(PFRT_OPTIONS_SESSION, faults);
  // "cpu" is what an empty provider list means anyway; with one, only another device can disagree.
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
  c.set("precision", options.precision);
  if (options.max_error != 0) c.set("max_error", options.max_error);
  c.set("deterministic", options.deterministic);
  c.set("tune", options.tune);
  if (!options.cache_dir.empty()) c.set("cache_dir", options.cache_dir);
  c.set("session.fallback", std::string(options.fallback ? "on" : "off"));
  c.set("session.halve_batch", std::string(options.halve_batch ? "on" : "off"));
  c.set("enable_mem_reuse", options.enable_mem_reuse);
  c.set("enable_mem_pattern", options.enable_mem_pattern);
  c.set("strict_dimension_names", options.strict_dimension_names);
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

// Options of one or more runs. Set fields before the first run that uses them; runs on several
// threads may share the object. A copy has the same fields and is cancelled on its own.
class RunOptions {
 public:
  RunOptions() : native_(std::make_unique<Native>()) {}
  // Copies the fields; a cancelled object's copy is not cancelled.
  RunOptions(const RunOptions& other)
      : tag(other.tag),
        log_level(other.log_level),
        timeout_ms(other.timeout_ms),
        num_threads(other.num_threads),
        memory_limit(other.memory_limit),
        priority(other.priority),
        state(other.state),
        observer(other.observer),
        native_(std::make_unique<Native>()) {}
  // Copies the fields; whether the object is cancelled stays.
  RunOptions& operator=(const RunOptions& other) {
    tag = other.tag;
    log_level = other.log_level;
    timeout_ms = other.timeout_ms;
    num_threads = other.num_threads;
    memory_limit = other.memory_limit;
    priority = other.priority;
    state = other.state;
    observer = other.observer;
    return *this;
  }
  ~RunOptions() = default;

  // A name for the run in logs and profiles.
  std::string tag;
  std::string log_level;   // "" = the session's
  int64_t timeout_ms = 0;  // 0 = none
  int num_threads = 0;     // 0 = the session's
  // Bytes of host memory that a run may take for what it works in and for its results; 0 = no limit
  // but the environment's.
  int64_t memory_limit = 0;
  // Of asynchronous runs that wait, those of higher priority are started first.
  int64_t priority = 0;
  // What runs take inputs from, and leave their own values in; none = no state.
  State state;
  // Sees SessionOptions::extra_outputs by name once a run has computed them, on the run's thread,
  // whether the run returns them or not. The tensor is the run's: copy what is to be kept. What it
  // throws comes out of the run (an asynchronous one: CancelledError). This object has to live
  // until the runs that use it are over. None = nobody sees them.
  std::function<void(const std::string& name, const Tensor& value)> observer;

  // Runs that use this object stop, now and later, until reset(). From any thread.
  void cancel() noexcept { api().options->cancel(native_->options.get()); }
  // Lets runs use the object again after cancel().
  void reset() noexcept { api().options->reset_cancel(native_->options.get()); }

  // The options as the C API takes them, up to date with the fields.
  pfrt_options* handle() const;
  // run(handle()), which throws what the observer threw.
  template <class Run>
  auto call(Run&& run) const {
    try {
      return run(handle());
    } catch (const PyFlameRTError&) {
      if (const std::exception_ptr thrown = take_thrown()) std::rethrow_exception(thrown);
      throw;
    }
  }

 private:
  static pfrt_code hear(void* user, pfrt_string name, pfrt_value* value) noexcept;
  std::exception_ptr take_thrown() const {
    const std::lock_guard<std::mutex> lock(native_->mutex);
    return std::exchange(native_->thrown, nullptr);
  }

  struct Native {
    Native() { detail::check(api().options->create(PFRT_OPTIONS_RUN, options.out())); }
    detail::Handle<pfrt_options> options;
    std::mutex mutex;
    // What |options| holds: runs on other threads may be reading it, so only changes are written.
    std::string tag, log_level;
    int64_t timeout_ms = 0;
    int num_threads = 0;
    int64_t memory_limit = 0, priority = 0;
    State state;
    bool observed = false;
    std::exception_ptr thrown;  // by the observer
  };
  std::unique_ptr<Native> native_;
};

inline pfrt_code RunOptions::hear(void* user, pfrt_string name, pfrt_value* value) noexcept {
  const auto& self = *static_cast<const RunOptions*>(user);
  try {
    self.observer(detail::str(name), Tensor::from_handle(detail::Handle<pfrt_value>::share(value)));
    return PFRT_CODE_OK;
  } catch (...) {
    const std::lock_guard<std::mutex> lock(self.native_->mutex);
    if (!self.native_->thrown) self.native_->thrown = std::current_exception();
    return PFRT_CODE_CANCELLED;
  }
}

inline pfrt_options* RunOptions::handle() const {
  Native& native = *native_;
  const std::lock_guard<std::mutex> lock(native.mutex);
  detail::OptionSetter c(native.options, nullptr);
  if (native.tag != tag) {
    c.set("tag", tag);
    native.tag = tag;
  }
  if (native.log_level != log_level) {
    c.set("log_level", log_level);
    native.log_level = log_level;
  }
  if (native.timeout_ms != timeout_ms) {
    c.set("timeout_ms", timeout_ms);
    native.timeout_ms = timeout_ms;
  }
  if (native.num_threads != num_threads) {
    c.set("num_threads", int64_t{num_threads});
    native.num_threads = num_threads;
  }
  if (native.memory_limit != memory_limit) {
    c.set("memory_limit", memory_limit);
    native.memory_limit = memory_limit;
  }
  if (native.priority != priority) {
    c.set("priority", priority);
    native.priority = priority;
  }
  if (native.state.handle() != state.handle()) {
    detail::check(api().options->set_state(native.options.get(), state.handle()));
    native.state = state;
  }
  const bool observed = static_cast<bool>(observer);
  if (native.observed != observed) {
    detail::check(api().options->set_observer(native.options.get(), observed ? &hear : nullptr,
                                              const_cast<RunOptions*>(this)));
    native.observed = observed;
  }
  return native.options.get();
}

}  // namespace pyflame_rt
