// SPDX-License-Identifier: Apache-2.0
//
// Values that one run of a session leaves for the next: outputs that are inputs of the run that
// follows, such as key-value caches and recurrent states, in host or device memory. A run takes the
// values and, when it has succeeded, puts its own in their place; one that fails changes nothing.
// Thread-safe; one run at a time has a state, and runs that want it take turns.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/exec/run/run_types.h"
#include "core/session/session.h"
#include "core/session/turns.h"

namespace pfrt {

// An output, and the input that it becomes in the next run. The value grows along |axis|, or is a
// cache with room to write into (kInPlace).
struct StatePair {
  enum class Growth { kByNames, kNone, kAlong, kInPlace };  // kByNames: as names and graph tell
  std::string input, output;
  Growth growth = Growth::kByNames;
  size_t axis = 0;
};

class State {
 public:
  // An empty |pairs| means the pairs that the ports' names tell.
  static Result<std::shared_ptr<State>> create(std::shared_ptr<Session> session,
                                               const std::vector<StatePair>& pairs);

  std::vector<std::string_view> inputs() const;
  // The size of the values along their growing axes; 0 where none grows, or none is set yet.
  int64_t length() const;
  // A separate state with the same values, which are shared until a run replaces them.
  Result<std::shared_ptr<State>> clone() const;
  // Keeps the first |length| along each growing axis; 0 makes the state new.
  Status truncate(int64_t length);
  // The value for |input|; null before there is one.
  Result<ValuePtr> get(std::string_view input) const;
  Status set(std::string_view input, ValuePtr value);
  // Writes a .pfm file of constants that have the inputs' names.
  Status save(const std::string& path) const;
  Status load(const std::string& path);

  // Refuses a run of |session| that is given values or places which are the state's. Both lists are
  // in the session's order.
  Status check_run(const Session& session, const std::vector<ValuePtr>& inputs,
                   const std::vector<OutputRequest>& requests) const;
  // A run's turn, which comes when the runs that joined before have left.
  using Turn = Turns::Place;
  Turns& turns() { return turns_; }
  // Begins the run that has the turn: fills in |inputs| and asks for the next values in |requests|.
  // The run calls end() with its outputs where it succeeds.
  Status begin(std::vector<ValuePtr>& inputs, std::vector<OutputRequest>& requests);
  void end(const std::vector<ValuePtr>& outputs);

 private:
  struct Entry {
    size_t input, output;        // ports
    std::optional<size_t> axis;  // the axis that it grows along
    bool in_place = false;       // runs write over it,
    bool settled = false;        // once a run has made it, in the memory where the plan makes it
    ValuePtr value;              // null: zeros, or empty along |axis|
    // Memory for the next value while this one is read, with room to grow.
    std::shared_ptr<Buffer> spare;
  };
  explicit State(std::shared_ptr<Session> session) : session_(std::move(session)) {}
  Status add(const StatePair& pair);
  Status find_pairs();
  Result<Entry*> entry_of(std::string_view input, std::string_view doing);
  const PortInfo& input_of(const Entry& e) const { return session_->inputs()[e.input]; }
  Status idle(std::string_view doing) const;
  Result<ValuePtr> first_value(const Entry& e, const std::vector<ValuePtr>& inputs) const;
  Status check(const Entry& e, const Value& value, std::string_view doing) const;
  static void make_room(Entry& e);
  // Makes the value of an entry in place this state's own, so that a run may write over it.
  static Status make_own(Entry& e);
  // Refuses to read values while a run writes over some.
  Status readable(std::string_view doing) const;

  const std::shared_ptr<Session> session_;
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
  Turns turns_;
};

}  // namespace pfrt
