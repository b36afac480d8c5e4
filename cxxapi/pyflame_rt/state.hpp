// SPDX-License-Identifier: Apache-2.0
//
// Values that runs of a session leave for the next: key-value caches, hidden states of recurrent
// layers. InferenceSession::create_state makes a state, and RunOptions::state gives it to runs.
// Thread-safe; runs with one state take turns, and those that keep it (RunOptions::keeps_state)
// share it.
#pragma once

#include <cstdint>
#include <pyflame_rt/api.hpp>
#include <pyflame_rt/value.hpp>
#include <string>
#include <unordered_map>
#include <vector>

namespace pyflame_rt {

class InferenceSession;

// The way a value's dimensions change from run to run.
enum class StateGrowth : uint32_t {
  // Along the axis whose dimension has another name in the output; else InPlace for a cache that
  // TensorScatter or GroupQueryAttention writes into, and Replaced elsewhere.
  ByNames = PFRT_STATE_BY_NAMES,
  Replaced = PFRT_STATE_REPLACED,  // along no axis: each run replaces the value
  Grows = PFRT_STATE_GROWS,        // along StatePair::axis
  // Along no axis: a cache with room for the longest sequence, which runs write into where it is.
  // What a run that fails has written stays.
  InPlace = PFRT_STATE_IN_PLACE,
};

// An output of a run and the input that it becomes in the next one.
struct StatePair {
  // Names of an input and an output of the session.
  std::string input, output;
  // The way the value grows.
  StateGrowth growth = StateGrowth::ByNames;
  uint32_t axis = 0;  // for StateGrowth::Grows, and for |capacity|
  // The length along |axis| that there is room for; 0 = unsaid. A value InPlace that nobody has set
  // is of zeros and as long as this; one that Grows has memory for it from its second run on.
  uint64_t capacity = 0;
};

namespace detail {
// The pairs as the C API takes them, which last as long as |pairs|.
inline std::vector<pfrt_state_pair> to_c(const std::vector<StatePair>& pairs) {
  std::vector<pfrt_state_pair> out;
  out.reserve(pairs.size());
  for (const StatePair& pair : pairs)
    out.push_back({sizeof(pfrt_state_pair), static_cast<pfrt_state_growth>(pair.growth), pair.axis,
                   0, text(pair.input), text(pair.output), pair.capacity});
  return out;
}
}  // namespace detail

// A state, or none. A copy refers to the same state; clone() makes another.
class State {
 public:
  State() noexcept = default;
  // Takes over a state of the C API.
  static State from_handle(detail::Handle<pfrt_state> handle) {
    State out;
    out.state_ = std::move(handle);
    return out;
  }

  // Whether there is a state.
  explicit operator bool() const noexcept { return static_cast<bool>(state_); }
  // Returns a state of its own with the same values, which takes no memory until runs make new
  // ones.
  State clone() const {
    State out;
    detail::check(api().state->clone(handle(), out.state_.out()));
    return out;
  }
  // Returns a state of |session|, made by |pairs| as by its create_state, with the values that this
  // one has for inputs of the same names. Values are shared; those on a device that |session| does
  // not use come to host memory. Throws what create_state throws and, for inputs and values that do
  // not fit, NotFoundError, ShapeMismatchError, DTypeMismatchError or InvalidArgumentError, which
  // lists them all.
  State clone_for(const InferenceSession& session, const std::vector<StatePair>& pairs = {}) const;
  // Length along the axes that values grow along, such as tokens in a cache.
  int64_t length() const noexcept { return api().state->length(handle()); }
  // Keeps the first |length| of it; 0 leaves the state as it was made. Throws UnsupportedError for
  // a |length| above 0 where each run replaces a value.
  void truncate(int64_t length) const { detail::check(api().state->truncate(handle(), length)); }
  // Row i of each value becomes what row |rows|[i] was, along the axis of the batch: the one whose
  // dimension has the batch's name in the session's other inputs, else axis 0. Rows may be
  // repeated, in any order and left out. Throws InvalidArgumentError for a row that there is not.
  // On failure nothing changes.
  void select_rows(const std::vector<int64_t>& rows) const {
    detail::check(api().state->select_rows(handle(), rows.data(), rows.size()));
  }
  // Returns a copy, in host memory, of the value that this input will have; its kind is Unset
  // before there is a value.
  Value get(const std::string& input) const {
    detail::Handle<pfrt_value> value;
    detail::check(api().state->get(handle(), detail::text(input), value.out()));
    return Value::from_handle(std::move(value));
  }
  // Sets the value that this input will have; it must not be written any more.
  void set(const std::string& input, const Value& value) const {
    detail::check(api().state->set(handle(), detail::text(input), value.handle()));
  }
  // Sets values by the names of the outputs that leave them, such as what a model for prompts has
  // returned; they must not be written any more. Throws NotFoundError for outputs that are not the
  // state's. On failure nothing changes.
  void set_outputs(const std::unordered_map<std::string, Value>& outputs) const {
    std::vector<pfrt_string> names;
    std::vector<pfrt_value*> values;
    for (const auto& [name, value] : outputs) {
      names.push_back(detail::text(name));
      values.push_back(value.handle());
    }
    detail::check(api().state->set_outputs(handle(), names.data(), values.data(), names.size()));
  }
  // Writes the values to a file, which is there whole or not at all.
  void save(const std::string& path) const {
    detail::check(api().state->save(handle(), detail::text(path)));
  }
  // Reads the values that save wrote of a state of the same pairs. On failure nothing changes.
  void load(const std::string& path) const {
    detail::check(api().state->load(handle(), detail::text(path)));
  }
  // The state of the C API; null where there is none.
  pfrt_state* handle() const noexcept { return state_.get(); }

 private:
  detail::Handle<pfrt_state> state_;
};

}  // namespace pyflame_rt
