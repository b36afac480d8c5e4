// SPDX-License-Identifier: Apache-2.0
//
// A model planned for its providers, ready to run. Move-only. run() is safe from many threads on
// one session; results belong to the caller.
#pragma once

#include <algorithm>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <pyflame_rt/model_io.hpp>
#include <pyflame_rt/options.hpp>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pyflame_rt {

// A step of a plan. Times are in nanoseconds; 0 means unknown or not measured.
struct ExplainStep {
  std::string nodes, ops;  // comma-separated
  std::string provider;    // or "host"
  // The kernel's name, as the provider gives it.
  std::string kernel;
  std::string reason;   // why this provider
  std::string refused;  // who refused it and why, or empty
  // Bytes read and written, and arithmetic operations done, as the provider counts them.
  uint64_t bytes = 0, flops = 0;
  // The provider's estimate, and the time of the last profiled run.
  double estimated_ns = 0, measured_ns = 0;
  double started_ns = 0;  // start in that run, since its first step
  uint32_t lane = 0;      // among steps that ran at once: which lane ran it
  // The division of its work, where it was tuned: "band=28 positions=512 gain=1.12 measured=9";
  // else empty. The names are the kernel's. |gain| is the default's time divided by this one's, and
  // |measured| counts the forms that were measured for this plan; 0 means that the result was
  // remembered.
  std::string tuning;
};

// A figure that a device counted by itself in the last run of some steps.
struct ExplainCounter {
  // The counted steps: |step_count| steps from |first_step| on, which one provider runs.
  size_t first_step = 0, step_count = 0;
  // The device's provider, and the provider's name for the figure: "cycles".
  std::string provider, name;
  std::string unit;  // may be empty
  double value = 0;  // any, also infinity and what is not a number
};

// The provider, the kernel and the reason of each step.
struct Explanation {
  // The steps, in the order in which they run.
  std::vector<ExplainStep> steps;
  // Figures of devices that count by themselves, in the order of their first steps.
  std::vector<ExplainCounter> counters;
  // Sentences about the whole: level and passes, providers, memory.
  std::vector<std::string> notes;
};

// Condition of a provider that the session was asked to use.
enum class ProviderCondition : uint32_t {
  Active = PFRT_PROVIDER_ACTIVE,        // in use, has never failed
  Recovered = PFRT_PROVIDER_RECOVERED,  // in use again after a failure
  Failing = PFRT_PROVIDER_FAILING,      // its last use failed and nobody took over
  Failed = PFRT_PROVIDER_FAILED,        // not used any more; those after it run its nodes
};

// A provider of the session's list.
struct ProviderState {
  // The provider's name in SessionOptions::providers.
  std::string name;
  // The provider's present condition.
  ProviderCondition condition = ProviderCondition::Active;
  std::string reason;             // of the last failure, or empty
  pfrt_code code = PFRT_CODE_OK;  // of the last failure
  uint32_t failures = 0;          // so far
};

// Counts of a session's runs so far.
struct SessionStatistics {
  uint64_t runs = 0, failures = 0;  // that succeeded, and that did not
  // Plans made for dimensions that were new or forgotten, and the nanoseconds that making them
  // took.
  uint64_t plans = 0, planning_ns = 0;
  // Runs among |runs| that were done in parts because memory did not suffice
  // (SessionOptions::halve_batch).
  uint64_t in_parts = 0;
};

// Phase of a session's life. While several runs go on it is that of the run in most trouble.
enum class SessionPhase : uint32_t {
  Initializing = PFRT_PHASE_INITIALIZING,
  Ready = PFRT_PHASE_READY,
  Executing = PFRT_PHASE_EXECUTING,
  InitError = PFRT_PHASE_INIT_ERROR,
  RuntimeError = PFRT_PHASE_RUNTIME_ERROR,
  MemoryError = PFRT_PHASE_MEMORY_ERROR,
  DeviceError = PFRT_PHASE_DEVICE_ERROR,
  Recovering = PFRT_PHASE_RECOVERING,
  MemoryRecovery = PFRT_PHASE_MEMORY_RECOVERY,
  DeviceRecovery = PFRT_PHASE_DEVICE_RECOVERY,
  FatalError = PFRT_PHASE_FATAL_ERROR,  // the last run failed; the next that succeeds ends it
  Cleanup = PFRT_PHASE_CLEANUP,
};

// Bytes of memory that a session takes: of the host's, but for those of devices.
struct MemoryReport {
  // The model's constants in memory, mapped files not counted, and constants in providers' own
  // layouts. Sessions share both.
  uint64_t weights = 0, packed = 0;
  // Blocks that runs work in: those of runs under way, those kept for the next run, and the
  // most of both since the session was made or planned anew.
  uint64_t in_use = 0, idle = 0, peak = 0;
  // A signature that a plan is kept for, and the size of the plan's block.
  struct Block {
    std::string signature;  // dimensions of the inputs: "x[8,3,224,224]"
    uint64_t bytes = 0;     // block that its runs work in
  };
  std::vector<Block> blocks;  // one for each plan
  // Blocks of runs in the memory of devices: of runs under way, and kept for the next run.
  uint64_t device_in_use = 0, device_idle = 0;
  // Values of the session's states and room for the next ones, in host memory and in that of
  // devices. What states share is counted once; memory of the client's own is not counted.
  uint64_t states = 0, device_states = 0;
};

// A session. Its constructors throw what Model::load throws, PyFlameRTError with code NotFound for
// an unknown provider, UnsupportedOperatorError for nodes that no provider runs, and InputError for
// wrong options.
class InferenceSession {
 public:
  // Loads the model at |path|.
  explicit InferenceSession(const std::string& path, const SessionOptions& options = {})
      : InferenceSession(load_for(path, options), options) {}
  // Copies the graph; constants are shared.
  explicit InferenceSession(const Graph& graph, const SessionOptions& options = {})
      : InferenceSession(Model::from_graph(graph), options) {}
  // Loads a model from the |size| bytes at |data|, which are copied.
  InferenceSession(const void* data, size_t size, const SessionOptions& options = {})
      : InferenceSession(Model::load(data, size), options) {}
  // Loads a model from |bytes|, which are copied.
  explicit InferenceSession(const std::vector<uint8_t>& bytes, const SessionOptions& options = {})
      : InferenceSession(bytes.data(), bytes.size(), options) {}
  // Sessions of one Model share its constants.
  explicit InferenceSession(const Model& model, const SessionOptions& options = {});

  InferenceSession(InferenceSession&&) noexcept = default;
  InferenceSession& operator=(InferenceSession&&) noexcept = default;
  InferenceSession(const InferenceSession&) = delete;
  InferenceSession& operator=(const InferenceSession&) = delete;

  // Inputs that must be fed, then those with initializers.
  const std::vector<NodeArg>& get_inputs() const noexcept { return inputs_; }
  // The model's outputs, then SessionOptions::extra_outputs.
  const std::vector<NodeArg>& get_outputs() const noexcept { return outputs_; }
  // The model's own metadata.
  ModelMetadata get_modelmeta() const { return get_model().metadata(); }
  // Providers in use, in order of preference.
  std::vector<std::string> get_providers() const;
  // Returns counts that grow while runs go on.
  SessionStatistics statistics() const {
    pfrt_session_statistics c{};
    c.struct_size = sizeof(c);
    detail::check(api().session->statistics(handle(), &c));
    return {c.runs, c.failures, c.plans, c.planning_ns, c.in_parts};
  }
  // Writes and closes the profile that SessionOptions::enable_profiling opened, and returns the
  // file's path: the same path at each further call, and an empty one without a profile. The file
  // is an object whose "traceEvents" Perfetto draws: every run with its tag, its steps and waiting,
  // how the model was loaded and the session made, memory and threads over time. Safe on any
  // thread; steps that runs under way have not done yet are missing. Throws PyFlameRTError where
  // the file cannot be written; the profile then stays open.
  std::string end_profiling() const {
    pfrt_string path{};
    detail::check(api().session->end_profiling(handle(), &path));
    return detail::str(path);
  }
  // Time when the profile began, in nanoseconds on CLOCK_MONOTONIC (std::chrono::steady_clock); 0 =
  // no profile.
  uint64_t get_profiling_start_time_ns() const {
    return api().session->profiling_start_ns(handle());
  }
  // Returns the host memory that the session takes, in bytes.
  MemoryReport memory_report() const;
  // Frees idle blocks and returns their size in bytes; the next run allocates anew.
  uint64_t trim() const {
    uint64_t bytes = 0;
    detail::check(api().session->trim(handle(), &bytes));
    return bytes;
  }
  // Returns the phase, which runs on other threads change.
  SessionPhase phase() const {
    pfrt_session_phase phase = PFRT_PHASE_UNSET;
    detail::check(api().session->phase(handle(), &phase, nullptr));
    return static_cast<SessionPhase>(phase);
  }
  // Returns the phase's name: "Ready".
  std::string phase_name() const {
    pfrt_session_phase phase = PFRT_PHASE_UNSET;
    pfrt_string name{};
    detail::check(api().session->phase(handle(), &phase, &name));
    return detail::str(name);
  }
  // The model that the session runs.
  Model get_model() const {
    return Model::from_handle(detail::Handle<pfrt_model>::share(api().session->model(handle())));
  }

  // Runs the model. |output_names| empty = all outputs. Results are in the order asked for. Throws
  // InputError for a missing or unknown name, ShapeMismatchError and DTypeMismatchError for a
  // tensor that does not fit, and BackendError when the run fails or is stopped. An output that is
  // not a tensor is an InputError: use run_values.
  std::vector<Tensor> run(const std::vector<std::string>& output_names,
                          const std::unordered_map<std::string, Tensor>& input_feed) const {
    return tensors(run_feed(output_names, input_feed, nullptr));
  }
  std::vector<Tensor> run(const std::vector<std::string>& output_names,
                          const std::unordered_map<std::string, Tensor>& input_feed,
                          const RunOptions& options) const {
    return options.call(
        [&](const pfrt_run_desc* c) { return tensors(run_feed(output_names, input_feed, c)); });
  }
  // Runs with sequences, maps and optionals too; otherwise like run.
  std::vector<Value> run_values(const std::vector<std::string>& output_names,
                                const std::unordered_map<std::string, Value>& input_feed) const {
    return run_feed(output_names, input_feed, nullptr);
  }
  std::vector<Value> run_values(const std::vector<std::string>& output_names,
                                const std::unordered_map<std::string, Value>& input_feed,
                                const RunOptions& options) const {
    return options.call(
        [&](const pfrt_run_desc* c) { return run_feed(output_names, input_feed, c); });
  }

  // Returns a tensor in the memory of an open device of the session: that of |provider| or, without
  // a name, of the first provider with memory of its own. Its contents are undefined. Throws
  // PyFlameRTError when there is no such device.
  Tensor create_tensor(std::vector<int64_t> shape, DType dtype,
                       const std::string& provider = {}) const {
    detail::Handle<pfrt_value> value;
    detail::check(api().value->create_on(handle(), detail::text(provider), to_c(dtype),
                                         shape.data(), shape.size(), value.out()));
    return Tensor::from_handle(std::move(value));
  }

  // Returns a state for RunOptions::state: values that a run of this session leaves for the next.
  // With |pairs| empty, names tell which belong together: "past_0" and "present_0",
  // "past_key_values.0.key" and "present.0.key", "h" and "h_out" or "hN". Throws PyFlameRTError
  // with code NotFound for names that the session does not have, and InvalidArgumentError for pairs
  // that do not fit each other.
  State create_state(const std::vector<StatePair>& pairs = {}) const {
    const std::vector<pfrt_state_pair> list = detail::to_c(pairs);
    detail::Handle<pfrt_state> made;
    detail::check(api().state->create(handle(), list.data(), list.size(), made.out()));
    return State::from_handle(std::move(made));
  }

  // Starts a run on a thread of the runtime and returns at once. Wrong names are thrown here; later
  // failures reach the future. The session and the options may be destroyed before the run is over;
  // the tensors' bytes must not be written until then.
  std::future<std::vector<Tensor>> run_async(
      const std::vector<std::string>& output_names,
      const std::unordered_map<std::string, Tensor>& input_feed) const {
    return run_future(output_names, input_feed, nullptr);
  }
  std::future<std::vector<Tensor>> run_async(
      const std::vector<std::string>& output_names,
      const std::unordered_map<std::string, Tensor>& input_feed, const RunOptions& options) const {
    return run_future(output_names, input_feed, &options);
  }
  // Callback of run_async, called once on a thread of the runtime with the results or with what run
  // would have thrown. It may release the session; other asynchronous runs wait for it. Exceptions
  // that it throws are lost.
  using RunCallback = std::function<void(std::vector<Tensor> outputs, std::exception_ptr failure)>;
  void run_async(const std::vector<std::string>& output_names,
                 const std::unordered_map<std::string, Tensor>& input_feed,
                 RunCallback done) const {
    run_callback(output_names, input_feed, std::move(done), nullptr);
  }
  void run_async(const std::vector<std::string>& output_names,
                 const std::unordered_map<std::string, Tensor>& input_feed, RunCallback done,
                 const RunOptions& options) const {
    run_callback(output_names, input_feed, std::move(done), &options);
  }

  // Returns the provider and kernel of each step and the reasons, with times of the last profiled
  // run.
  Explanation explain() const;
  // Returns the condition of every provider asked for, in order of preference, also of those that
  // did not open. Runs on other threads may change it.
  std::vector<ProviderState> provider_states() const;
  // Uses a provider again that was set aside after a failure: opens its device and plans the graph
  // anew, while runs go on as before. Throws NotFoundError when the session was made without it.
  // The timeout of |options| and their cancel() stop it with TimeoutError and CancelledError; the
  // provider then stays aside.
  void readmit(std::string_view provider, const RunOptions& options = {}) const;

  pfrt_session* handle() const {
    if (!session_) throw InvalidArgumentError("the session was moved from");
    return session_.get();
  }

 private:
  static Model load_for(const std::string& path, const SessionOptions& options) {
    LoadOptions load;
    load.cache_dir = options.cache_dir;
    return Model::load(path, load);
  }
  using Places = std::unordered_map<std::string, size_t>;  // by name
  static size_t find(const Places& places, const std::vector<NodeArg>& args,
                     const std::string& name, const char* what);
  static std::vector<Tensor> tensors(const std::vector<Value>& values);
  template <class V>
  std::vector<Value> run_feed(const std::vector<std::string>& output_names,
                              const std::unordered_map<std::string, V>& feed,
                              const pfrt_run_desc* desc) const;
  template <class V>
  std::vector<pfrt_io> inputs_io(const std::unordered_map<std::string, V>& feed) const;
  // Writes to |wanted| the index of each output in |output_names|, in that order; none for all.
  std::vector<pfrt_io> outputs_io(const std::vector<std::string>& output_names,
                                  std::vector<size_t>* wanted) const;
  // Takes over the references in |outputs|.
  static std::vector<Value> take(const pfrt_io* outputs, size_t count,
                                 const std::vector<size_t>& wanted);
  std::future<std::vector<Tensor>> run_future(
      const std::vector<std::string>& output_names,
      const std::unordered_map<std::string, Tensor>& input_feed, const RunOptions* options) const;
  void run_callback(const std::vector<std::string>& output_names,
                    const std::unordered_map<std::string, Tensor>& input_feed, RunCallback done,
                    const RunOptions* options) const;

  detail::Handle<pfrt_session> session_;
  std::vector<NodeArg> inputs_, outputs_;
  Places input_places_, output_places_;
};

inline InferenceSession::InferenceSession(const Model& model, const SessionOptions& options) {
  const detail::Handle<pfrt_options> c_options = detail::to_c(options, nullptr);
  std::vector<pfrt_string> extra;
  extra.reserve(options.extra_outputs.size());
  for (const std::string& name : options.extra_outputs) extra.push_back(detail::text(name));
  pfrt_session_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.model = model.handle();
  desc.options = c_options.get();
  desc.extra_outputs = extra.data();
  desc.extra_output_count = extra.size();
  const std::vector<detail::SampleInC> in_c(options.samples.begin(), options.samples.end());
  std::vector<pfrt_sample> samples;
  samples.reserve(in_c.size());
  for (const detail::SampleInC& sample : in_c) samples.push_back(sample.get());
  desc.samples = samples.data();
  desc.sample_count = samples.size();
  const detail::SourceInC source(options.sample_source);
  desc.sample_source = source.get();
  const detail::ProgressCall progress(c_options.get(), options.progress);
  const pfrt_session_api& table = *api().session;
  pfrt_env* const env = Environment::instance().handle();
  detail::set_log(desc, options.logger);  // which create takes over
  pfrt_status* const status = table.create(env, &desc, session_.out());
  if (status != nullptr) {
    try {
      source.rethrow();
    } catch (...) {
      api().status->release(status);
      throw;
    }
  }
  progress.finish(status);
  for (size_t i = 0; i < table.input_count(session_.get()); ++i) {
    inputs_.emplace_back(detail::info_at(table.input_at, session_.get(), i));
    input_places_.try_emplace(inputs_.back().name, i);
  }
  for (size_t i = 0; i < table.output_count(session_.get()); ++i) {
    outputs_.emplace_back(detail::info_at(table.output_at, session_.get(), i));
    output_places_.try_emplace(outputs_.back().name, i);
  }
}

inline std::vector<std::string> InferenceSession::get_providers() const {
  std::vector<std::string> out;
  for (const ProviderState& state : provider_states()) {
    if (state.condition != ProviderCondition::Failed) out.push_back(state.name);
  }
  return out;
}

inline size_t InferenceSession::find(const Places& places, const std::vector<NodeArg>& args,
                                     const std::string& name, const char* what) {
  if (const auto it = places.find(name); it != places.end()) return it->second;
  std::string message = std::string("the model has no ") + what + " '" + name + "'; it has";
  if (args.empty()) message += " none";
  for (const NodeArg& arg : args) message += " '" + arg.name + "'";
  throw InputError(message);
}

inline std::vector<Tensor> InferenceSession::tensors(const std::vector<Value>& values) {
  std::vector<Tensor> out;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values[i].is_tensor()) {
      throw InputError("result " + std::to_string(i) + " is not a tensor: use run_values");
    }
    out.push_back(values[i].tensor());
  }
  return out;
}

template <class V>
std::vector<pfrt_io> InferenceSession::inputs_io(
    const std::unordered_map<std::string, V>& feed) const {
  std::vector<pfrt_io> inputs(inputs_.size());
  for (pfrt_io& input : inputs) {
    input.struct_size = sizeof(input);
    input.tensor.struct_size = sizeof(input.tensor);
  }
  for (const auto& [name, value] : feed) {
    const size_t index = find(input_places_, inputs_, name, "input");
    if (!value.is_valid()) throw InputError("input '" + name + "' was given an empty object");
    inputs[index].value = value.handle();
  }
  return inputs;
}

inline std::vector<pfrt_io> InferenceSession::outputs_io(
    const std::vector<std::string>& output_names, std::vector<size_t>* wanted) const {
  std::vector<pfrt_io> outputs(outputs_.size());
  for (pfrt_io& output : outputs) {
    output.struct_size = sizeof(output);
    output.tensor.struct_size = sizeof(output.tensor);
    output.flags = output_names.empty() ? 0 : PFRT_IO_SKIP;
  }
  for (const std::string& name : output_names) {
    wanted->push_back(find(output_places_, outputs_, name, "output"));
    outputs[wanted->back()].flags = 0;
  }
  return outputs;
}

inline std::vector<Value> InferenceSession::take(const pfrt_io* outputs, size_t count,
                                                 const std::vector<size_t>& wanted) {
  std::vector<detail::Handle<pfrt_value>> handles;
  handles.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    handles.push_back(detail::Handle<pfrt_value>::adopt(outputs[i].value));
  }
  std::vector<Value> values;
  values.reserve(handles.size());
  for (auto& handle : handles) values.push_back(Value::from_handle(std::move(handle)));
  if (wanted.empty()) return values;
  std::vector<Value> out;
  out.reserve(wanted.size());
  for (size_t index : wanted) out.push_back(values[index]);
  return out;
}

inline std::vector<ProviderState> InferenceSession::provider_states() const {
  std::vector<ProviderState> out(api().session->provider_state_count(handle()));
  for (size_t i = 0; i < out.size(); ++i) {
    pfrt_provider_state c{};
    c.struct_size = sizeof(c);
    detail::check(api().session->provider_state(handle(), i, &c));
    out[i].name = detail::str(c.name);
    out[i].condition = static_cast<ProviderCondition>(c.condition);
    out[i].reason = detail::str(c.reason);
    out[i].code = c.code;
    out[i].failures = c.failures;
  }
  return out;
}

inline MemoryReport InferenceSession::memory_report() const {
  struct Rows {
    std::vector<MemoryReport::Block> blocks;
    std::exception_ptr thrown;
    static void add(void* user, pfrt_string signature, uint64_t bytes) noexcept {
      auto* const self = static_cast<Rows*>(user);
      try {
        self->blocks.push_back({detail::str(signature), bytes});
      } catch (...) {
        self->thrown = std::current_exception();
      }
    }
  } rows;
  pfrt_memory_report c{};
  c.struct_size = sizeof(c);
  detail::check(api().session->memory_report(handle(), &c, &Rows::add, &rows));
  if (rows.thrown) std::rethrow_exception(rows.thrown);
  return {c.weights,       c.packed,      c.in_use, c.idle,         c.peak, std::move(rows.blocks),
          c.device_in_use, c.device_idle, c.states, c.device_states};
}

inline State State::clone_for(const InferenceSession& session,
                              const std::vector<StatePair>& pairs) const {
  const std::vector<pfrt_state_pair> list = detail::to_c(pairs);
  detail::Handle<pfrt_state> made;
  detail::check(
      api().state->clone_for(handle(), session.handle(), list.data(), list.size(), made.out()));
  return from_handle(std::move(made));
}

inline void InferenceSession::readmit(std::string_view provider, const RunOptions& options) const {
  const pfrt_run_desc desc = options.desc();
  detail::check(api().session->readmit(handle(), detail::text(provider), &desc));
}

template <class V>
std::vector<Value> InferenceSession::run_feed(const std::vector<std::string>& output_names,
                                              const std::unordered_map<std::string, V>& feed,
                                              const pfrt_run_desc* desc) const {
  (void)handle();
  const std::vector<pfrt_io> inputs = inputs_io(feed);
  std::vector<size_t> wanted;
  std::vector<pfrt_io> outputs = outputs_io(output_names, &wanted);
  detail::check(api().session->run(handle(), inputs.data(), inputs.size(), outputs.data(),
                                   outputs.size(), desc));
  return take(outputs.data(), outputs.size(), wanted);
}

inline void InferenceSession::run_callback(
    const std::vector<std::string>& output_names,
    const std::unordered_map<std::string, Tensor>& input_feed, RunCallback done,
    const RunOptions* options) const {
  struct Pending {
    RunCallback done;
    std::vector<size_t> wanted;
    std::shared_ptr<const void> keep;

    static void finish(void* user, pfrt_status* status, pfrt_io* outputs, size_t count) {
      const std::unique_ptr<Pending> self(static_cast<Pending*>(user));
      std::vector<Tensor> results;
      std::exception_ptr failure;
      try {
        std::vector<Value> values =
            take(outputs, count, status ? std::vector<size_t>() : self->wanted);
        detail::check(status);
        results = tensors(values);
      } catch (...) {
        failure = std::current_exception();
      }
      try {
        self->done(std::move(results), failure);
      } catch (...) {
        // Nothing may unwind through the C library.
      }
    }
  };
  (void)handle();
  if (!done) throw InvalidArgumentError("run_async was given an empty callback");
  auto pending = std::make_unique<Pending>();
  pending->done = std::move(done);
  const std::vector<pfrt_io> inputs = inputs_io(input_feed);
  const std::vector<pfrt_io> outputs = outputs_io(output_names, &pending->wanted);
  pfrt_run_desc desc{};
  if (options != nullptr) {
    desc = options->desc();
    pending->keep = options->keep();
  }
  detail::check(api().session->run_async(handle(), inputs.data(), inputs.size(), outputs.data(),
                                         outputs.size(), options ? &desc : nullptr,
                                         &Pending::finish, pending.get()));
  (void)pending.release();
}

inline std::future<std::vector<Tensor>> InferenceSession::run_future(
    const std::vector<std::string>& output_names,
    const std::unordered_map<std::string, Tensor>& input_feed, const RunOptions* options) const {
  auto promise = std::make_shared<std::promise<std::vector<Tensor>>>();
  std::future<std::vector<Tensor>> future = promise->get_future();
  run_callback(
      output_names, input_feed,
      [promise](std::vector<Tensor> outputs, const std::exception_ptr& failure) {
        if (failure) {
          promise->set_exception(failure);
        } else {
          promise->set_value(std::move(outputs));
        }
      },
      options);
  return future;
}

inline Explanation InferenceSession::explain() const {
  struct Release {
    void operator()(pfrt_report* report) const { api().report->release(report); }
  };
  pfrt_report* raw = nullptr;
  detail::check(api().session->explain(handle(), &raw));
  const std::unique_ptr<pfrt_report, Release> report(raw);
  Explanation out;
  out.steps.resize(api().report->row_count(raw));
  for (size_t i = 0; i < out.steps.size(); ++i) {
    pfrt_report_row c{};
    c.struct_size = sizeof(c);
    detail::check(api().report->row_at(raw, i, &c));
    ExplainStep& step = out.steps[i];
    step.nodes = detail::str(c.nodes);
    step.ops = detail::str(c.ops);
    step.provider = detail::str(c.provider);
    step.kernel = detail::str(c.kernel);
    step.reason = detail::str(c.reason);
    step.refused = detail::str(c.refused);
    step.bytes = c.bytes;
    step.flops = c.flops;
    step.estimated_ns = c.estimated_ns;
    step.measured_ns = c.measured_ns;
    step.started_ns = c.started_ns;
    step.lane = c.lane;
    step.tuning = detail::str(c.tuning);
  }
  out.counters.resize(api().report->counter_count(raw));
  for (size_t i = 0; i < out.counters.size(); ++i) {
    pfrt_report_counter c{};
    c.struct_size = sizeof(c);
    detail::check(api().report->counter_at(raw, i, &c));
    out.counters[i] = {c.first_row,         c.row_count,         detail::str(c.provider),
                       detail::str(c.name), detail::str(c.unit), c.value};
  }
  for (size_t i = 0; i < api().report->note_count(raw); ++i) {
    out.notes.push_back(detail::str(api().report->note_at(raw, i)));
  }
  return out;
}

}  // namespace pyflame_rt
