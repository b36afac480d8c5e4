// SPDX-License-Identifier: Apache-2.0
#include "core/session/state.h"

#include "capi/handle/counted.h"
#include "capi/handle/guard.h"
#include "capi/handle/session.h"
#include "capi/handle/slots.h"
#include "capi/handle/state.h"
#include "capi/handle/value.h"
#include "core/environment/environment.h"
#include "core/exec/device_copy.h"

namespace pfrt::capi {
namespace {

Result<StatePair> pair_from(const pfrt_state_pair& pair, size_t index) {
  StatePair out{std::string(view(pair.input)), std::string(view(pair.output))};
  out.axis = pair.axis;
  out.capacity = pair.capacity;
  switch (pair.growth) {
    case PFRT_STATE_BY_NAMES:
      return out;
    case PFRT_STATE_REPLACED:
      out.growth = StatePair::Growth::kNone;
      return out;
    case PFRT_STATE_GROWS:
      out.growth = StatePair::Growth::kAlong;
      return out;
    case PFRT_STATE_IN_PLACE:
      out.growth = StatePair::Growth::kInPlace;
      return out;
    default:
      return abi::unknown_number(message("making a state: pair ", index), "growth", pair.growth);
  }
}

// Makes a state of |session|: |make| does of the session and the pairs.
template <typename Make>
pfrt_status* make_for(pfrt_session* session, const pfrt_state_pair* pairs, size_t count,
                      pfrt_state** out, Make make) {
  return guard([&]() -> Status {
    if (!session || !out || (count && !pairs))
      return null_argument(!session ? "session" : !out ? "out_state" : "pairs");
    *out = nullptr;
    PFRT_TRY(abi::check_array(pairs, count));
    std::vector<StatePair> list;
    for (size_t i = 0; i < count; ++i) {
      PFRT_ASSIGN(StatePair pair, pair_from(abi::known(&abi::element(pairs, i)), i));
      list.push_back(std::move(pair));
    }
    auto handle = std::make_unique<pfrt_state>();
    handle->env = session->env;
    const EnvironmentScope scope(*session->env);
    PFRT_ASSIGN(handle->state, make(session->session, list));
    *out = handle.release();
    return {};
  });
}

pfrt_status* create(pfrt_session* session, const pfrt_state_pair* pairs, size_t count,
                    pfrt_state** out) {
  return make_for(session, pairs, count, out, State::create);
}

pfrt_status* clone_for(const pfrt_state* s, pfrt_session* session, const pfrt_state_pair* pairs,
                       size_t count, pfrt_state** out) {
  return make_for(session, pairs, count, out,
                  [s](const auto& with, const auto& list) -> Result<std::shared_ptr<State>> {
                    return s ? s->state->clone_for(with, list) : null_argument("state");
                  });
}

size_t input_count(const pfrt_state* s) { return s ? s->state->inputs().size() : 0; }

pfrt_status* input_at(const pfrt_state* s, size_t index, pfrt_string* out) {
  return guard([&]() -> Status {
    if (!s || !out) return null_argument(s ? "out_name" : "state");
    *out = {};
    const auto names = s->state->inputs();
    if (index >= names.size())
      return error(Code::kINVALID_ARGUMENT, "reading input ", index, " of a state of ",
                   names.size());
    *out = to_c(names[index]);
    return {};
  });
}

pfrt_status* clone(const pfrt_state* s, pfrt_state** out) {
  return guard([&]() -> Status {
    if (!s || !out) return null_argument(s ? "out_state" : "state");
    *out = nullptr;
    auto handle = std::make_unique<pfrt_state>();
    handle->env = s->env;
    PFRT_ASSIGN(handle->state, s->state->clone());
    *out = handle.release();
    return {};
  });
}

int64_t length(const pfrt_state* s) { return s ? s->state->length() : 0; }

template <typename Fn>
pfrt_status* with(const pfrt_state* s, Fn fn) {
  return guard([&]() -> Status {
    if (!s) return null_argument("state");
    const EnvironmentScope scope(*s->env);
    return fn(*s->state);
  });
}

pfrt_status* truncate(pfrt_state* s, int64_t length) {
  return with(s, [&](State& state) { return state.truncate(length); });
}

pfrt_status* select_rows(pfrt_state* s, const int64_t* rows, size_t count) {
  return with(s, [&](State& state) -> Status {
    if (count && !rows) return null_argument("rows");
    return state.select_rows({rows, count});
  });
}

pfrt_status* get(const pfrt_state* s, pfrt_string input, pfrt_value** out) {
  return with(s, [&](const State& state) -> Status {
    if (!out) return null_argument("out_value");
    *out = nullptr;
    PFRT_ASSIGN(ValuePtr value, state.get(view(input)));
    if (!value) return {};
    const RunControl control;
    Status copied = copy_to_host({&value}, control);
    Status finished = control.devices.finish({});
    PFRT_TRY(std::move(copied));
    PFRT_TRY(std::move(finished));
    PFRT_ASSIGN(value, exclusive(std::move(value)));
    *out = new pfrt_value(std::move(value));
    return {};
  });
}

pfrt_status* set(pfrt_state* s, pfrt_string input, pfrt_value* value) {
  return with(s, [&](State& state) -> Status {
    if (!value) return null_argument("value");
    return state.set(view(input), value->value);
  });
}

pfrt_status* set_outputs(pfrt_state* s, const pfrt_string* outputs, pfrt_value* const* values,
                         size_t count) {
  return with(s, [&](State& state) -> Status {
    if (count && (!outputs || !values)) return null_argument(outputs ? "values" : "outputs");
    std::vector<std::pair<std::string_view, ValuePtr>> list;
    for (size_t i = 0; i < count; ++i) {
      if (!values[i]) return null_argument("values");
      list.emplace_back(view(outputs[i]), values[i]->value);
    }
    return state.set_outputs(list);
  });
}

pfrt_status* save(const pfrt_state* s, pfrt_string path) {
  return with(s, [&](const State& state) { return state.save(std::string(view(path))); });
}

pfrt_status* load(pfrt_state* s, pfrt_string path) {
  return with(s, [&](State& state) { return state.load(std::string(view(path))); });
}

}  // namespace

const pfrt_state_api kStateApi = {
    sizeof(pfrt_state_api),
    PFRT_ABI_VERSION,
    create,
    retain<pfrt_state>,
    last_call<release<pfrt_state>, pfrt_state>,
    input_count,
    input_at,
    clone,
    clone_for,
    length,
    truncate,
    select_rows,
    get,
    set,
    set_outputs,
    save,
    load,
};

}  // namespace pfrt::capi
