// SPDX-License-Identifier: Apache-2.0
//
// Values that runs of a session leave for the next: key-value caches, hidden states of recurrent
// layers. InferenceSession::create_state makes a state, and RunOptions::state gives it to runs.
// Thread-safe; runs with one state take turns.
#pragma once

#include <cstdint>
#include <pyflame_rt/api.hpp>
#include <pyflame_rt/value.hpp>
#include <string>

namespace pyflame_rt {

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
  uint32_t axis = 0;  // for StateGrowth::Grows
};

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
  // Length along the axes that values grow along, such as tokens in a cache.
  int64_t length() const noexcept { return api().state->length(handle()); }
  // Keeps the first |length| of it; 0 leaves the state as it was made. Throws UnsupportedError for
  // a |length| above 0 where each run replaces a value.
  void truncate(int64_t length) const { detail::check(api().state->truncate(handle(), length)); }
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
