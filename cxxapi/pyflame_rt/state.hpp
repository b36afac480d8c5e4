// SPDX-License-Identifier: Apache-2.0
//
// What runs of a session leave for the next: key-value caches, recurrent layers. Made by
// InferenceSession::create_state, given to runs by RunOptions::state. Thread-safe; one run at a
// time has a state.
#pragma once

#include <cstdint>
#include <pyflame_rt/api.hpp>
#include <pyflame_rt/value.hpp>
#include <string>

namespace pyflame_rt {

// How a value changes its dimensions from run to run.
enum class StateGrowth : uint32_t {
  ByNames = PFRT_STATE_BY_NAMES,   // along the axis whose dimension has another name in the output
  Replaced = PFRT_STATE_REPLACED,  // not at all
  Grows = PFRT_STATE_GROWS,        // along StatePair::axis
};

// An output of a run and the input that it is for the next one.
struct StatePair {
  // Names of ports of the session.
  std::string input, output;
  // How its dimensions change.
  StateGrowth growth = StateGrowth::ByNames;
  uint32_t axis = 0;  // for StateGrowth::Grows
};

// A state, or none. A copy is the same state; clone() makes another.
class State {
 public:
  State() noexcept = default;
  // Takes a state of the C API.
  static State from_handle(detail::Handle<pfrt_state> handle) {
    State out;
    out.state_ = std::move(handle);
    return out;
  }

  // Whether there is one.
  explicit operator bool() const noexcept { return static_cast<bool>(state_); }
  // A state of its own with the same values, which takes no memory until runs make new ones.
  State clone() const {
    State out;
    detail::check(api().state->clone(handle(), out.state_.out()));
    return out;
  }
  // What there is along the axes that values grow along: tokens of a cache.
  int64_t length() const noexcept { return api().state->length(handle()); }
  // Leaves the first |length| of it; 0 leaves the state as it was made. UnsupportedError for more
  // than 0 where a value is replaced by each run.
  void truncate(int64_t length) const { detail::check(api().state->truncate(handle(), length)); }
  // A copy, in host memory, of the value that this input will have; of kind Unset before there is
  // one.
  Value get(const std::string& input) const {
    detail::Handle<pfrt_value> value;
    detail::check(api().state->get(handle(), detail::text(input), value.out()));
    return Value::from_handle(std::move(value));
  }
  // The value that this input will have; it must not be written any more.
  void set(const std::string& input, const Value& value) const {
    detail::check(api().state->set(handle(), detail::text(input), value.handle()));
  }
  // Writes the values to a file, which is there whole or not at all.
  void save(const std::string& path) const {
    detail::check(api().state->save(handle(), detail::text(path)));
  }
  // Takes the values that save wrote of a state of the same pairs. On failure nothing changes.
  void load(const std::string& path) const {
    detail::check(api().state->load(handle(), detail::text(path)));
  }
  // As the C API takes it; null where there is none.
  pfrt_state* handle() const noexcept { return state_.get(); }

 private:
  detail::Handle<pfrt_state> state_;
};

}  // namespace pyflame_rt
