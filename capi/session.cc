// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstddef>
#include <memory_resource>
#include <optional>

#include "capi/handle/plugin_scope.h"
#include "capi/handle/report.h"
#include "capi/handle/slots.h"
#include "capi/handle/tensor.h"
#include "capi/run.h"
#include "core/session/state.h"

namespace pfrt::capi {
namespace {

Result<std::vector<NamedValues>> samples_of(const pfrt_session_desc& desc) {
  if (desc.sample_count && !desc.samples) return null_argument("desc.samples");
  if (desc.sample_count && desc.samples->struct_size < sizeof(pfrt_sample))
    return error(Code::kINVALID_ARGUMENT,
                 "creating a session: struct_size of pfrt_sample is not set");
  std::vector<NamedValues> out(desc.sample_count);
  for (size_t i = 0; i < desc.sample_count; ++i) {
    const pfrt_sample sample =
        read(static_cast<const pfrt_sample*>(pfrt_at(desc.samples, desc.samples->struct_size, i)));
    if (sample.count && (!sample.names || !sample.values))
      return null_argument(!sample.names ? "desc.samples.names" : "desc.samples.values");
    for (size_t v = 0; v < sample.count; ++v) {
      if (!sample.values[v]) return null_argument("desc.samples.values[]");
      out[i].emplace_back(view(sample.names[v]), sample.values[v]->value);
    }
  }
  return out;
}

// Bytes of a tensor whose dimensions are all numbers.
std::optional<uint64_t> bytes_of(const pfrt_value_info& port) {
  if (port.rank < 0 || port.dtype == PFRT_DTYPE_UNSET) return std::nullopt;
  const auto rank = static_cast<size_t>(port.rank);
  if (std::any_of(port.dims, port.dims + rank, [](int64_t d) { return d < 0; }))
    return std::nullopt;
  return tensor_bytes(port.dtype, element_count(port.dims, rank));
}

pfrt_status* create(pfrt_env* env, const pfrt_session_desc* desc_in, pfrt_session** out) {
  return guard([&]() -> Status {
    if (!env || !desc_in || !out)
      return null_argument(!env ? "env" : !desc_in ? "desc" : "out_session");
    *out = nullptr;
    const pfrt_session_desc desc = read(desc_in);
    if (!desc.model) return null_argument("desc.model");
    const Options defaults(PFRT_OPTIONS_SESSION);
    const Options& o = desc.options ? desc.options->options : defaults;
    if (o.kind() != PFRT_OPTIONS_SESSION)
      return error(Code::kINVALID_ARGUMENT, "creating a session: the options are of kind ",
                   options_kind_name(o.kind()), ", not session");
    if (desc.extra_output_count && !desc.extra_outputs) return null_argument("desc.extra_outputs");
    std::vector<std::string> extra;
    for (size_t i = 0; i < desc.extra_output_count; ++i)
      extra.emplace_back(view(desc.extra_outputs[i]));
    const EnvironmentScope scope =
        EnvironmentScope::lasting(*env->state, o.get(session_option::kUseEnvAllocators));
    PFRT_ASSIGN(std::vector<NamedValues> samples, samples_of(desc));
    auto handle = std::make_unique<pfrt_session>();
    handle->env = env->state;
    PFRT_ASSIGN(handle->session,
                env->state->create_session(desc.model->model, o, extra, std::move(samples)));
    retain(desc.model);
    handle->model_handle = desc.model;
    const auto describe_ports = [&](const std::vector<PortInfo>& ports,
                                    std::vector<pfrt_value_info>& infos) {
      for (const PortInfo& port : ports) {
        handle->storage.push_back(std::make_unique<InfoStorage>());
        infos.push_back(make_value_info(port, *handle->storage.back()));
      }
    };
    describe_ports(handle->session->inputs(), handle->inputs);
    describe_ports(handle->session->outputs(), handle->outputs);
    for (const pfrt_value_info& output : handle->outputs)
      handle->output_bytes.push_back(bytes_of(output));
    *out = handle.release();
    return {};
  });
}

size_t input_count(const pfrt_session* s) { return s ? s->inputs.size() : 0; }
size_t output_count(const pfrt_session* s) { return s ? s->outputs.size() : 0; }

pfrt_status* port_at(const pfrt_session* s, const std::vector<pfrt_value_info> pfrt_session::*ports,
                     const char* what, size_t index, pfrt_value_info* out) {
  return guard([&]() -> Status {
    if (!s || !out) return null_argument(s ? "out_info" : "session");
    const auto& all = s->*ports;
    if (index >= all.size())
      return error(Code::kINVALID_ARGUMENT, "reading ", what, " ", index, " of ", all.size());
    write(out, all[index]);
    return {};
  });
}

pfrt_status* input_at(const pfrt_session* s, size_t index, pfrt_value_info* out) {
  return port_at(s, &pfrt_session::inputs, "input", index, out);
}
pfrt_status* output_at(const pfrt_session* s, size_t index, pfrt_value_info* out) {
  return port_at(s, &pfrt_session::outputs, "output", index, out);
}

// Index of the port of that name; the number of ports when there is none.
size_t find_port(const std::vector<pfrt_value_info>& ports, std::string_view name) {
  const auto it = std::ranges::find(ports, name, [](const auto& p) { return view(p.name); });
  return static_cast<size_t>(it - ports.begin());
}

Status no_port(std::string_view doing, const char* what, std::string_view name,
               const std::vector<pfrt_value_info>& ports, Code code) {
  std::string names;
  for (const pfrt_value_info& port : ports)
    names += message(names.empty() ? "" : ", ", "'", port.name, "'");
  return error(code, doing, ": the session has no ", what, " '", name, "'; it has ",
               names.empty() ? "none" : names);
}

pfrt_status* port_index(const pfrt_session* s,
                        const std::vector<pfrt_value_info> pfrt_session::*ports, const char* what,
                        pfrt_string name, size_t* out) {
  return guard([&]() -> Status {
    if (!s || !out || (name.size && !name.data))
      return null_argument(!s ? "session" : !out ? "out_index" : "name");
    *out = 0;
    const size_t at = find_port(s->*ports, view(name));
    if (at == (s->*ports).size())
      return no_port(message("looking for ", what, " '", name, "'"), what, view(name), s->*ports,
                     Code::kNOT_FOUND);
    *out = at;
    return {};
  });
}

pfrt_status* input_index(const pfrt_session* s, pfrt_string name, size_t* out) {
  return port_index(s, &pfrt_session::inputs, "input", name, out);
}
pfrt_status* output_index(const pfrt_session* s, pfrt_string name, size_t* out) {
  return port_index(s, &pfrt_session::outputs, "output", name, out);
}

size_t provider_count(const pfrt_session* s) { return s ? s->session->providers().size() : 0; }
pfrt_string provider_at(const pfrt_session* s, size_t index) {
  return s && index < s->session->providers().size() ? to_c(s->session->providers()[index])
                                                     : to_c("");
}

// ---- run ----

struct Range {
  uintptr_t begin, end;
  const Device* device;  // null = host; addresses in different memories cannot be compared
  bool overlaps(const Range& other) const {
    return device == other.device && begin < other.end && other.begin < end;
  }
};

Range range_of(const void* data, uint64_t bytes, const Device* device) {
  const auto begin = reinterpret_cast<uintptr_t>(data);
  return {begin, begin + static_cast<uintptr_t>(bytes), device};
}

Status read_inputs(const pfrt_session& s, const pfrt_io* inputs, size_t count,
                   std::vector<ValuePtr>& values, std::pmr::vector<Range>& ranges) {
  for (size_t i = 0; i < count; ++i) {
    const pfrt_io io = io_at(inputs, i);
    if (io.value) {
      values.push_back(io.value->value);
    } else if (io.tensor.dtype == PFRT_DTYPE_UNSET) {
      values.push_back(nullptr);
      continue;
    } else {
      const size_t element = std::max<size_t>(1, std::min<size_t>(8, dtype_size(io.tensor.dtype)));
      const bool aligned =
          (reinterpret_cast<uintptr_t>(io.tensor.data) + io.tensor.offset) % element == 0;
      auto tensor = tensor_from(io.tensor, aligned, {});
      if (!tensor.ok())
        return tensor.take_status().prepend(message("running: input '", s.inputs[i].name, "'"));
      values.push_back(Value::of(tensor.take()));
    }
    const Tensor& t = values.back()->tensor;
    if (t.valid() && t.bytes()) ranges.push_back(range_of(t.data(), t.bytes(), t.device()));
  }
  return {};
}

// Whether a result can be written to memory of |have| bytes that was given for elements |given|.
// |kind|, |dtype| and |bytes| are the result's, as far as they are known.
Status check_memory(pfrt_string output, pfrt_value_kind kind, pfrt_dtype dtype,
                    std::optional<uint64_t> bytes, pfrt_dtype given, uint64_t have) {
  if ((kind != PFRT_VALUE_UNSET && kind != PFRT_VALUE_TENSOR) || dtype == PFRT_DTYPE_STRING)
    return error(Code::kINVALID_ARGUMENT, "running: output '", output,
                 "' is not a tensor of numbers, so it cannot be written to the caller's memory; "
                 "let the run allocate it");
  if (given != PFRT_DTYPE_UNSET && dtype != PFRT_DTYPE_UNSET && given != dtype)
    return error(Code::kDTYPE_MISMATCH, "running: memory for output '", output, "' is for ",
                 dtype_name(given), ", the result is ", dtype_name(dtype));
  if (bytes && *bytes != have)
    return error(Code::kSHAPE_MISMATCH, "running: memory for output '", output, "' has ", have,
                 " bytes, the result has ", *bytes);
  return {};
}

pfrt_dtype given_dtype(const pfrt_io& io) {
  return io.value ? io.value->value->tensor.dtype : io.tensor.dtype;
}

// Whether |range| equals that of one of the first |inputs|, and touches no other.
bool is_one_input(const std::pmr::vector<Range>& ranges, size_t inputs, const Range& range) {
  size_t touched = 0, same = 0;
  for (size_t i = 0; i < ranges.size(); ++i) {
    touched += range.overlaps(ranges[i]);
    same += i < inputs && range.overlaps(ranges[i]) && range.begin == ranges[i].begin &&
            range.end == ranges[i].end;
  }
  return touched == 1 && same == 1;
}

// |as_planned|: no initializer is fed, so that outputs have the dimensions they are listed with.
Status read_outputs(const pfrt_session& s, const pfrt_io* outputs, size_t count, bool as_planned,
                    std::vector<OutputRequest>& requests, std::pmr::vector<Range>& ranges) {
  const size_t inputs = ranges.size();
  for (size_t i = 0; i < count; ++i) {
    pfrt_io io = io_at(outputs, i);
    OutputRequest request;
    request.wanted = !(io.flags & PFRT_IO_SKIP);
    request.on_device = (io.flags & PFRT_IO_ON_DEVICE) != 0;
    if (request.wanted && io.value) {
      request.data = io.value->value->tensor.data();
      request.bytes = io.value->value->tensor.valid() ? io.value->value->tensor.bytes() : 0;
      if (io.value->value->tensor.device()) request.buffer = io.value->value->tensor.buffer;
    } else if (request.wanted && io.tensor.data) {
      if (io.tensor.strides)
        return error(Code::kUNSUPPORTED, "running: memory for output '", s.outputs[i].name,
                     "' has strides; only row-major memory can be written");
      PFRT_TRY(settle_view(io.tensor));
      request.data = io.tensor.data;
      request.bytes = io.tensor.bytes;
      const size_t element = std::max<size_t>(1, std::min<size_t>(8, dtype_size(io.tensor.dtype)));
      if (reinterpret_cast<uintptr_t>(request.data) % element != 0)
        return error(Code::kINVALID_ARGUMENT, "running: memory for output '", s.outputs[i].name,
                     "' is not aligned for its elements of ", element, " bytes");
    }
    if (request.data) {
      const pfrt_value_info& port = s.outputs[i];
      PFRT_TRY(check_memory(port.name, port.kind, port.dtype,
                            as_planned ? s.output_bytes[i] : std::nullopt, given_dtype(io),
                            request.bytes));
      const Range range = range_of(request.data, request.bytes, request.device());
      request.in_place = (io.flags & PFRT_IO_IN_PLACE) != 0 && is_one_input(ranges, inputs, range);
      for (const Range& other : ranges)
        if (range.overlaps(other) && !request.in_place)
          return error(Code::kINVALID_ARGUMENT, "running: memory for output '", s.outputs[i].name,
                       "' overlaps that of an input or another output");
      ranges.push_back(range);
    }
    requests.push_back(request);
  }
  return {};
}

// Writes the results to the places that the caller gave. Nothing is handed out unless everything
// fits.
Status give_outputs(const pfrt_session& s, pfrt_io* outputs,
                    const std::vector<OutputRequest>& requests, std::vector<ValuePtr>& values) {
  std::array<std::byte, 256> near;
  std::pmr::monotonic_buffer_resource memory(near.data(), near.size());
  std::pmr::vector<std::unique_ptr<pfrt_value>> made(values.size(), &memory);
  for (size_t i = 0; i < values.size(); ++i) {
    if (!requests[i].wanted) continue;
    if (!requests[i].data) {
      // A result may be an input or a constant passed on: the caller gets bytes of its own.
      PFRT_ASSIGN(ValuePtr own, exclusive(std::move(values[i])));
      made[i] = std::make_unique<pfrt_value>(std::move(own));
      continue;
    }
    const Tensor& t = values[i]->tensor;
    const bool numbers = values[i]->kind == PFRT_VALUE_TENSOR && t.dtype != PFRT_DTYPE_STRING;
    PFRT_TRY(check_memory(s.outputs[i].name, values[i]->kind, t.dtype,
                          numbers ? std::optional(t.bytes()) : std::nullopt,
                          given_dtype(io_at(outputs, i)), requests[i].bytes));
    if (t.data() != requests[i].data && t.bytes())
      std::memcpy(requests[i].data, t.data(), t.bytes());
  }
  PFRT_TRY(s.session->model()->intact(true));
  for (size_t i = 0; i < values.size(); ++i) {
    if (!made[i]) continue;
    slot_at(outputs, i)->value = made[i].release();
  }
  return {};
}

// Runs the session, timed where the log is to have the time.
Status compute_unobserved(pfrt_session& s, const PreparedRun& run,
                          const std::vector<ValuePtr>& inputs,
                          const std::vector<OutputRequest>& requests,
                          std::vector<ValuePtr>& results) {
  if (run.trace.empty()) return s.session->run(inputs, requests, run.control, results);
  const uint64_t start = os::monotonic_ns();
  Status status = s.session->run(inputs, requests, run.control, results);
  const double ms = static_cast<double>(os::monotonic_ns() - start) / 1e6;
  s.session->logger().write(PFRT_LOG_DEBUG,
                            message(run.trace, " on ", run.control.width, " threads: ", ms, " ms",
                                    status.ok() ? "" : "; ", status.message()));
  return status;
}

// Index of the first output beyond the model's own.
size_t first_extra(const pfrt_session& s) { return s.session->model()->signature().outputs.size(); }

Status observe(const pfrt_session& s, const Observer& observer,
               const std::vector<ValuePtr>& results) {
  for (size_t i = first_extra(s); i < results.size(); ++i) {
    const std::string_view name = view(s.outputs[i].name);
    auto* const value = new pfrt_value(results[i]);  // the observer may retain it
    pfrt_code code = PFRT_CODE_OK;
    const bool threw = !call_foreign([&] { code = observer.fn(observer.user, to_c(name), value); });
    release(value);
    if (threw || code != PFRT_CODE_OK)
      return error(threw ? Code::kINTERNAL : static_cast<Code>(code), "running: the observer of '",
                   name, "' ", threw ? "threw" : "ended the run");
  }
  return {};
}

// Computes the outputs, and calls the observer for the extra ones.
Status compute(pfrt_session& s, const PreparedRun& run, const std::vector<ValuePtr>& inputs,
               const std::vector<OutputRequest>& requests, std::vector<ValuePtr>& results) {
  if (!run.observer.fn) return compute_unobserved(s, run, inputs, requests, results);
  std::vector<OutputRequest> observed = requests;
  for (size_t i = first_extra(s); i < observed.size(); ++i) {
    observed[i].wanted = true;
    observed[i].on_device = false;
  }
  PFRT_TRY(compute_unobserved(s, run, inputs, observed, results));
  return observe(s, run.observer, results);
}

// Runs with a state, which has the run's values once the caller has the results.
Status carry_out_with_state(pfrt_session& s, PreparedRun& run, pfrt_io* outputs) {
  std::vector<ValuePtr> inputs = std::move(run.values), results;
  std::vector<OutputRequest> requests = run.requests;
  run.control.unsplit = true;
  {
    // The state outlives the run, and its budget.
    const EnvironmentScope scope(run.own, s.env->budget(), s.session->env_allocators());
    PFRT_TRY(run.state->begin(*s.session, inputs, requests));
  }
  struct Turn {
    State& state;
    std::vector<ValuePtr> next;
    ~Turn() { state.end(next); }
  } turn{*run.state, {}};
  const EnvironmentScope scope(run.own, run.budget, s.session->env_allocators());
  PFRT_TRY(compute(s, run, inputs, requests, results));
  inputs.clear();
  std::vector<ValuePtr> next = results;
  PFRT_TRY(give_outputs(s, outputs, run.requests, results));
  turn.next = std::move(next);
  return {};
}

pfrt_status* run(pfrt_session* s, const pfrt_io* inputs, size_t n_inputs, pfrt_io* outputs,
                 size_t n_outputs, const pfrt_options* options) {
  return guard([&]() -> Status {
    if (!s) return null_argument("session");
    PreparedRun prepared;
    PFRT_TRY(prepare_run(*s, inputs, n_inputs, outputs, n_outputs, options, prepared));
    return carry_out(*s, prepared, outputs);
  });
}

// Puts |given|, which is named by |names|, in the order of the ports; |places| gets the index of
// each.
Status in_session_order(const std::vector<pfrt_value_info>& ports, const char* what,
                        const pfrt_string* names, const pfrt_io* given, size_t count,
                        std::pmr::vector<pfrt_io>& out, std::pmr::vector<size_t>& places) {
  std::pmr::vector<bool> named(ports.size(), out.get_allocator());
  for (size_t i = 0; i < count; ++i) {
    const size_t at = find_port(ports, view(names[i]));
    if (at == ports.size()) return no_port("running", what, view(names[i]), ports, Code::kINPUT);
    if (named[at])
      return error(Code::kINPUT, "running: ", what, " '", names[i], "' is given twice");
    named[at] = true;
    out[at] = io_at(given, i);
    out[at].struct_size = sizeof(pfrt_io);
    places.push_back(at);
  }
  return {};
}

pfrt_status* run_named(pfrt_session* s, const pfrt_string* input_names, const pfrt_io* inputs,
                       size_t n_inputs, const pfrt_string* output_names, pfrt_io* outputs,
                       size_t n_outputs, const pfrt_options* options) {
  return guard([&]() -> Status {
    if (!s) return null_argument("session");
    if ((n_inputs && !input_names) || (n_outputs && !output_names))
      return null_argument("input_names or output_names");
    PFRT_TRY(check_io(inputs, n_inputs, outputs, n_outputs));
    std::array<std::byte, 2048> near;
    std::pmr::monotonic_buffer_resource memory(near.data(), near.size());
    pfrt_io absent{};
    absent.struct_size = sizeof absent;
    std::pmr::vector<pfrt_io> all_inputs(s->inputs.size(), absent, &memory);
    absent.flags = PFRT_IO_SKIP;
    std::pmr::vector<pfrt_io> all_outputs(s->outputs.size(), absent, &memory);
    std::pmr::vector<size_t> places(&memory);
    PFRT_TRY(
        in_session_order(s->inputs, "input", input_names, inputs, n_inputs, all_inputs, places));
    places.clear();
    PFRT_TRY(in_session_order(s->outputs, "output", output_names, outputs, n_outputs, all_outputs,
                              places));
    PreparedRun prepared;
    PFRT_TRY(prepare_run(*s, all_inputs.data(), all_inputs.size(), all_outputs.data(),
                         all_outputs.size(), options, prepared));
    PFRT_TRY(carry_out(*s, prepared, all_outputs.data()));
    for (size_t i = 0; i < n_outputs; ++i)
      slot_at(outputs, i)->value = all_outputs[places[i]].value;
    return {};
  });
}

pfrt_status* explain(pfrt_session* s, pfrt_report** out) {
  return guard([&]() -> Status {
    if (!s || !out) return null_argument(s ? "out_report" : "session");
    *out = nullptr;
    const EnvironmentScope scope(*s->env);
    auto report = std::make_unique<pfrt_report>();
    Session::Explanation explanation = s->session->explain();
    report->rows = std::move(explanation.steps);
    report->counters = std::move(explanation.counters);
    report->notes = std::move(explanation.notes);
    *out = report.release();
    return {};
  });
}

pfrt_model* model(const pfrt_session* s) { return s ? s->model_handle : nullptr; }

size_t provider_state_count(const pfrt_session* s) {
  return s ? s->session->provider_set().size() : 0;
}

pfrt_status* provider_state(const pfrt_session* s, size_t index, pfrt_provider_state* out) {
  return guard([&]() -> Status {
    if (!s || !out) return null_argument(s ? "out_state" : "session");
    const ProviderSet& providers = s->session->provider_set();
    if (index >= providers.size())
      return error(Code::kINVALID_ARGUMENT, "reading the state of provider ", index, " of ",
                   providers.size());
    const ProviderSet::State from = providers.state(index);
    pfrt_provider_state state{};
    state.condition = from.condition;
    state.name = to_c(from.name);
    state.reason = to_c(from.reason);
    state.code = static_cast<pfrt_code>(from.code);
    state.failures = from.failures;
    write(out, state);
    return {};
  });
}

pfrt_status* readmit(pfrt_session* s, pfrt_string provider, const pfrt_options* options) {
  return guard([&]() -> Status {
    if (!s) return null_argument("session");
    if (provider.size && !provider.data) return null_argument("provider");
    if (options && options->options.kind() != PFRT_OPTIONS_RUN)
      return error(Code::kINVALID_ARGUMENT,
                   "taking a provider into use again: the options are of kind ",
                   options_kind_name(options->options.kind()), ", not run");
    const EnvironmentScope scope = EnvironmentScope::lasting(*s->env, s->session->env_allocators());
    return s->session->readmit(view(provider), options ? options->options.progress() : Progress());
  });
}

pfrt_status* trim(pfrt_session* s, uint64_t* out) {
  return guard([&]() -> Status {
    if (!s) return null_argument("session");
    const uint64_t bytes = s->session->trim();
    if (out) *out = bytes;
    return {};
  });
}

pfrt_status* memory_report(const pfrt_session* s, pfrt_memory_report* out,
                           void (*row)(void* user, pfrt_string signature, uint64_t bytes),
                           void* user) {
  return guard([&]() -> Status {
    if (!s || !out) return null_argument(s ? "out_report" : "session");
    const Session::MemoryReport report = s->session->memory_report();
    pfrt_memory_report c{};
    c.weights = report.weights;
    c.packed = report.packed;
    c.in_use = report.in_use;
    c.idle = report.idle;
    c.peak = report.peak;
    write(out, c);
    if (row)
      for (const auto& one : report.signatures)
        call_foreign([&] { row(user, to_c(one.first), one.second); });
    return {};
  });
}

pfrt_status* phase(const pfrt_session* s, pfrt_session_phase* out, pfrt_string* out_name) {
  return guard([&]() -> Status {
    if (!s || !out) return null_argument(s ? "out_phase" : "session");
    *out = s->session->phase();
    if (out_name) *out_name = to_c(phase_name(*out));
    return {};
  });
}

pfrt_status* statistics(const pfrt_session* s, pfrt_session_statistics* out) {
  return guard([&]() -> Status {
    if (!s || !out) return null_argument(s ? "out_statistics" : "session");
    const RunStatistics& from = s->session->statistics();
    pfrt_session_statistics statistics{};
    statistics.runs = from.runs;
    statistics.failures = from.failures;
    statistics.plans = from.plans;
    statistics.planning_ns = from.planning_ns;
    statistics.in_parts = from.in_parts;
    write(out, statistics);
    return {};
  });
}

pfrt_status* end_profiling(pfrt_session* s, pfrt_string* out) {
  return guard([&]() -> Status {
    if (!s || !out) return null_argument(s ? "out_path" : "session");
    *out = to_c("");
    PFRT_ASSIGN(const std::string_view path, s->session->end_profiling());
    *out = to_c(path);
    return {};
  });
}

uint64_t profiling_start_ns(const pfrt_session* s) {
  return s ? s->session->profiling_start_ns() : 0;
}

}  // namespace

pfrt_io io_at(const pfrt_io* list, size_t i) {
  return read(static_cast<const pfrt_io*>(pfrt_at(list, list->struct_size, i)));
}

Status check_io(const pfrt_io* inputs, size_t n_inputs, const pfrt_io* outputs, size_t n_outputs) {
  if ((n_inputs && !inputs) || (n_outputs && !outputs)) return null_argument("inputs or outputs");
  const auto wrong = [](const pfrt_io* list, size_t count) {
    return count && (list->struct_size < kLeastIo || list->struct_size % alignof(pfrt_io));
  };
  if (wrong(inputs, n_inputs) || wrong(outputs, n_outputs))
    return error(Code::kINVALID_ARGUMENT, "running: struct_size of pfrt_io is not set");
  return {};
}

Status prepare_run(pfrt_session& s, const pfrt_io* inputs, size_t n_inputs, const pfrt_io* outputs,
                   size_t n_outputs, const pfrt_options* options, PreparedRun& out) {
  PFRT_TRY(check_io(inputs, n_inputs, outputs, n_outputs));
  if (n_inputs != s.inputs.size() || n_outputs != s.outputs.size())
    return error(Code::kINPUT, "running: ", n_inputs, " inputs and ", n_outputs,
                 " outputs were given, the session has ", s.inputs.size(), " and ",
                 s.outputs.size());
  if (options && options->options.kind() != PFRT_OPTIONS_RUN)
    return error(Code::kINVALID_ARGUMENT, "running: the options are of kind ",
                 options_kind_name(options->options.kind()), ", not run");
  out.own = s.env->replacements();
  out.budget = s.env->budget();
  RunControl& control = out.control;
  int64_t threads = 0;
  bool log = s.session->logger().wants(PFRT_LOG_DEBUG);
  if (options) {
    const Options& o = options->options;
    if (o.is_set(run_option::kLogLevel))
      log = log_level_from(o.get(run_option::kLogLevel)) == PFRT_LOG_DEBUG;
    if (log && o.is_set(run_option::kTag))
      out.trace = message("run '", o.get(run_option::kTag), "'");
    control.cancelled = &o.cancel_flag();
    if (const int64_t ms = o.get(run_option::kTimeoutMs))
      control.deadline_ns = os::monotonic_ns() + static_cast<uint64_t>(ms) * 1'000'000u;
    threads = o.get(run_option::kNumThreads);
    out.own_width = threads > 0;
    out.priority = o.get(run_option::kPriority);
    out.state = options->state;
    out.observer = options->observer;
    out.budget = budget_of("the run", static_cast<uint64_t>(o.get(run_option::kMemoryLimit)),
                           s.env->budget());
  }
  if (log && out.trace.empty()) out.trace = "run";
  if (out.own) control.executor = out.own->threads().get();
  control.width = s.session->width(threads, control.executor ? control.executor->width() : 0);
  control.profile = s.session->profile();
  if (control.profile) {
    control.number = control.profile->begin_run();
    control.tag = options ? control.profile->name(options->options.get(run_option::kTag)) : 0;
  }
  std::array<std::byte, 1024> near;
  std::pmr::monotonic_buffer_resource memory(near.data(), near.size());
  std::pmr::vector<Range> ranges(&memory);
  ranges.reserve(n_inputs + n_outputs);
  out.values.reserve(n_inputs);
  out.requests.reserve(n_outputs);
  const EnvironmentScope scope(out.own, out.budget, s.session->env_allocators());
  PFRT_TRY(read_inputs(s, inputs, n_inputs, out.values, ranges));
  bool fed = false;
  for (size_t i = 0; i < n_inputs; ++i) fed = fed || (s.inputs[i].has_initializer && out.values[i]);
  return read_outputs(s, outputs, n_outputs, !fed, out.requests, ranges);
}

Status carry_out(pfrt_session& s, PreparedRun& run, pfrt_io* outputs) {
  const RunUnderWay under_way;
  if (!run.own_width) run.control.width = under_way.share(run.control.width);
  if (run.state) return carry_out_with_state(s, run, outputs);
  const EnvironmentScope scope(run.own, run.budget, s.session->env_allocators());
  std::vector<ValuePtr> results;
  PFRT_TRY(compute(s, run, run.values, run.requests, results));
  s.env->after_run();
  return give_outputs(s, outputs, run.requests, results);
}

const pfrt_session_api kSessionApi = {
    sizeof(pfrt_session_api),
    PFRT_ABI_VERSION,
    create,
    retain<pfrt_session>,
    last_call<release<pfrt_session>, pfrt_session>,
    input_count,
    input_at,
    output_count,
    output_at,
    input_index,
    output_index,
    provider_count,
    provider_at,
    run,
    run_named,
    explain,
    model,
    provider_state_count,
    provider_state,
    run_async,
    readmit,
    statistics,
    end_profiling,
    profiling_start_ns,
    trim,
    memory_report,
    phase,
};

}  // namespace pfrt::capi
