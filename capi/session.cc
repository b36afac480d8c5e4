// SPDX-License-Identifier: Apache-2.0
#include "capi/handle/session.h"

#include <algorithm>

#include "capi/handle/env.h"
#include "capi/handle/guard.h"
#include "capi/handle/options.h"
#include "capi/handle/report.h"
#include "capi/handle/slots.h"
#include "capi/handle/value.h"
#include "capi/run.h"
#include "core/base/foreign.h"
#include "core/session/run.h"

namespace pfrt::capi {
namespace {

Result<NamedValues> sample_of(const pfrt_sample& sample) {
  if (sample.count && (!sample.names || !sample.values))
    return null_argument(!sample.names ? "desc.samples.names" : "desc.samples.values");
  NamedValues out;
  out.reserve(sample.count);
  for (size_t v = 0; v < sample.count; ++v) {
    if (!sample.values[v]) return null_argument("desc.samples.values[]");
    out.emplace_back(view(sample.names[v]), sample.values[v]->value);
  }
  return out;
}

Result<std::vector<NamedValues>> samples_of(const pfrt_session_desc& desc) {
  if (desc.sample_count && !desc.samples) return null_argument("desc.samples");
  PFRT_TRY(abi::check_array(desc.samples, desc.sample_count));
  std::vector<NamedValues> out;
  for (size_t i = 0; i < desc.sample_count; ++i) {
    PFRT_ASSIGN(NamedValues sample, sample_of(abi::known(&abi::element(desc.samples, i))));
    out.push_back(std::move(sample));
  }
  return out;
}

// The samples that the client's functions give.
class ClientSamples final : public SampleSource {
 public:
  explicit ClientSamples(const pfrt_sample_source& from) : from_(from) {}
  Status rewind() override {
    index_ = 0;
    return outcome("going back to the first sample", [&] { return from_.rewind(from_.user); });
  }
  Result<std::optional<NamedValues>> next() override {
    pfrt_sample sample{};
    sample.struct_size = sizeof sample;
    const std::string doing = message("reading sample ", index_++);
    PFRT_TRY(outcome(doing, [&] { return from_.next(from_.user, &sample); }));
    if (sample.count == 0) return std::optional<NamedValues>();
    auto out = sample_of(sample);
    if (!out.ok()) return out.take_status().prepend("creating a session: " + doing);
    return std::optional<NamedValues>(out.take());
  }

 private:
  template <typename Fn>
  Status outcome(std::string_view doing, Fn&& fn) const {
    pfrt_code code = PFRT_CODE_INTERNAL;
    if (!call_foreign([&] { code = fn(); }))
      return error(Code::kINTERNAL, "creating a session: ", doing,
                   ": an exception escaped the sample source");
    if (code == PFRT_CODE_OK) return {};
    return error(static_cast<Code>(code), "creating a session: ", doing,
                 ": the sample source returned '", code_text(static_cast<Code>(code)), "'");
  }

  const pfrt_sample_source from_;
  size_t index_ = 0;
};

Result<std::unique_ptr<SampleSource>> source_of(const pfrt_session_desc& desc) {
  if (!desc.sample_source) return std::unique_ptr<SampleSource>();
  PFRT_ASSIGN(const pfrt_sample_source source, read(desc.sample_source));
  if (!source.next || !source.rewind)
    return null_argument(source.next ? "desc.sample_source.rewind" : "desc.sample_source.next");
  if (desc.sample_count)
    return error(Code::kINVALID_ARGUMENT,
                 "creating a session: desc has samples and a sample_source; give one of the two");
  return std::unique_ptr<SampleSource>(std::make_unique<ClientSamples>(source));
}

pfrt_status* create(pfrt_env* env, const pfrt_session_desc* desc_in, pfrt_session** out) {
  std::shared_ptr<void> keep_log;  // released on every failure, after all locks are given up
  return guard([&]() -> Status {
    const pfrt_session_desc known = abi::known(desc_in);
    keep_log = lifetime(known.log_release, known.log_user);
    if (!env || !desc_in || !out)
      return null_argument(!env ? "env" : !desc_in ? "desc" : "out_session");
    *out = nullptr;
    PFRT_ASSIGN(const pfrt_session_desc desc, read(desc_in));
    if (!desc.model) return null_argument("desc.model");
    const Options defaults(PFRT_OPTIONS_SESSION);
    const Options& o = desc.options ? desc.options->options : defaults;
    if (o.kind() != PFRT_OPTIONS_SESSION)
      return error(Code::kINVALID_ARGUMENT, "creating a session: the options are of kind ",
                   options_kind_name(o.kind()), ", not session");
    if (desc.extra_output_count && !desc.extra_outputs) return null_argument("desc.extra_outputs");
    Environment::SessionParts parts;
    for (size_t i = 0; i < desc.extra_output_count; ++i)
      parts.extra_outputs.emplace_back(view(desc.extra_outputs[i]));
    const EnvironmentScope scope =
        EnvironmentScope::lasting(*env->state, o.get(session_option::kUseEnvAllocators));
    PFRT_ASSIGN(parts.samples, samples_of(desc));
    PFRT_ASSIGN(parts.sample_source, source_of(desc));
    parts.log = desc.log;
    parts.log_user = desc.log_user;
    parts.keep_log = keep_log;
    auto handle = std::make_unique<pfrt_session>();
    handle->env = env->state;
    PFRT_ASSIGN(handle->session,
                env->state->create_session(desc.model->model, o, std::move(parts)));
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
    return write(out, all[index]);
  });
}

pfrt_status* input_at(const pfrt_session* s, size_t index, pfrt_value_info* out) {
  return port_at(s, &pfrt_session::inputs, "input", index, out);
}
pfrt_status* output_at(const pfrt_session* s, size_t index, pfrt_value_info* out) {
  return port_at(s, &pfrt_session::outputs, "output", index, out);
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
    return write(out, state);
  });
}

pfrt_status* readmit(pfrt_session* s, pfrt_string provider, const pfrt_run_desc* desc) {
  return guard([&]() -> Status {
    if (!s) return null_argument("session");
    if (provider.size && !provider.data) return null_argument("provider");
    RunSettings settings;
    PFRT_TRY(read_settings("taking a provider into use again", desc, settings));
    Progress progress(settings.cancel, nullptr, nullptr);
    progress.set_deadline(settings.deadline_ns);
    const EnvironmentScope scope = EnvironmentScope::lasting(*s->env, s->session->env_allocators());
    return s->session->readmit(view(provider), progress);
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
    c.states = report.states;
    c.device_in_use = report.device_in_use;
    c.device_idle = report.device_idle;
    c.device_states = report.device_states;
    PFRT_TRY(write(out, c));
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
    return write(out, statistics);
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
