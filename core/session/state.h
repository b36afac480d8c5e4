// SPDX-License-Identifier: Apache-2.0
//
// Values that one run of a session leaves for the next: outputs that are inputs of the run that
// follows, such as key-value caches and recurrent states, in host or device memory. A run takes the
// values and, when it has succeeded, puts its own in their place; one that fails changes nothing,
// and one that keeps the state only reads. Thread-safe; a run that does not keep the state has it
// alone, and runs that want it take turns.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/exec/run/run_types.h"
#include "core/session/session.h"
#include "core/session/state_pair.h"
#include "core/session/turns.h"

namespace pfrt {

class State {
 public:
  // An empty |pairs| means those that the model declares or else the ports' names tell.
  static Result<std::shared_ptr<State>> create(std::shared_ptr<Session> session,
                                               const std::vector<StatePair>& pairs);
  ~State();

  std::vector<std::string_view> inputs() const;
  // The size of the values along their growing axes; 0 where none grows, or none is set yet.
  int64_t length() const;
  // A separate state with the same values, which are shared until a run replaces them.
  Result<std::shared_ptr<State>> clone() const;
  // A state of |session| by |pairs| that has these values, by the inputs' names. Those on devices
  // that it does not use come to the host.
  Result<std::shared_ptr<State>> clone_for(std::shared_ptr<Session> session,
                                           const std::vector<StatePair>& pairs) const;
  // Keeps the first |length| along each growing axis; 0 makes the state new.
  Status truncate(int64_t length);
  // Row i of each value becomes what row |rows|[i] is, along the axis of the batch.
  Status select_rows(std::span<const int64_t> rows);
  // The value for |input|; null before there is one.
  Result<ValuePtr> get(std::string_view input) const;
  Status set(std::string_view input, ValuePtr value);
  // Sets values by the names of the outputs that leave them.
  Status set_outputs(const std::vector<std::pair<std::string_view, ValuePtr>>& outputs);
  // Writes a .pfm file of constants that have the inputs' names.
  Status save(const std::string& path) const;
  Status load(const std::string& path);
  // Adds the memory of the values and the spare memory, but for buffers that were |counted|.
  void add_memory(std::unordered_set<const Buffer*>& counted, Session::MemoryReport& out) const;

  // Refuses a run of |session| that is given values or places which are the state's. Both lists are
  // in the session's order.
  Status check_run(const Session& session, const std::vector<ValuePtr>& inputs,
                   const std::vector<OutputRequest>& requests, bool keeps) const;
  // A run's turn, which comes when the runs that joined before have left, or all share the state.
  using Turn = Turns::Place;
  Turns& turns() { return turns_; }
  // Fills in |inputs| of a run that has its turn and keeps the state.
  Status lend(std::vector<ValuePtr>& inputs) const;
  // Begins the run that has the turn: fills in |inputs| and asks for the next values in |requests|.
  // The run calls end() with its outputs where it succeeds.
  Status begin(std::vector<ValuePtr>& inputs, std::vector<OutputRequest>& requests);
  // Copies what |outputs| have of the caller's |inputs|, which need not stay as they are.
  Status own_outputs(const std::vector<ValuePtr>& inputs, std::vector<ValuePtr>& outputs) const;
  // |outputs| get the former values.
  void end(std::vector<ValuePtr>& outputs);

 private:
  struct Entry {
    size_t input, output;        // ports
    std::optional<size_t> axis;  // the axis that it grows along
    bool in_place = false;       // runs write over it
    uint64_t capacity = 0;       // the length that there is room for; 0 = unsaid
    size_t capacity_axis = 0;
    ValuePtr value;  // null: zeros, or empty along |axis|
    // Memory for the next value while this one is read, with room to grow.
    std::shared_ptr<Buffer> spare;
  };
  explicit State(std::shared_ptr<Session> session) : session_(std::move(session)) {}

  // ---- pairs (state_pairs.cc) ----
  Status add(const StatePair& pair);
  Status add_declared_or_named();
  Status find_pairs();
  Status give_capacity(Entry& e, const StatePair& pair, std::string_view both) const;

  const PortInfo& input_of(const Entry& e) const { return session_->inputs()[e.input]; }
  const PortInfo& output_of(const Entry& e) const { return session_->outputs()[e.output]; }
  Result<size_t> index_of(std::string_view input, std::string_view doing) const;
  std::string names_of_inputs() const;
  static int64_t length_of(const Entry& e);
  // A tensor of the same type in the same memory, with undefined contents.
  static Result<Tensor> like(const Tensor& t, Dims dims);
  Status idle(std::string_view doing) const;
  // Refuses to read values while a run writes over some.
  Status readable(std::string_view doing) const;
  Status check(const Entry& e, const Value& value, std::string_view doing) const;
  Status check_clone(const Entry& e, const Entry& from) const;
  // Puts in the values that are not null, and gets the former ones. These go after the lock, since
  // what releases a client's memory may call back.
  void put(std::vector<ValuePtr>& values);

  // ---- parts of values (state_parts.cc) ----
  // The name that the batch's dimension has; empty where none is known.
  std::string_view batch_name() const;
  std::optional<size_t> axis_named(const Entry& e, std::string_view name) const;
  Result<ValuePtr> rows_of(const Entry& e, std::string_view batch, std::span<const int64_t> rows,
                           std::string_view doing, Transfers& transfers) const;

  // ---- runs (state_runs.cc) ----
  Status fill_in(std::vector<ValuePtr>& inputs) const;
  Result<ValuePtr> first_value(const Entry& e, const std::vector<ValuePtr>& inputs) const;
  static void make_room(Entry& e);
  // Whether |value|, of the type of the entry's and not there yet, is to lie in the spare memory.
  static bool suits(const Entry& e, const Tensor& value);
  // The bytes of a value like |value| that is as long as the pair's capacity; 0 where it has none.
  static uint64_t full_bytes(const Entry& e, const Tensor& value);
  // Keeps the memory of the former value as spare memory, where only this state has it.
  static void keep_memory(Entry& e, const ValuePtr& last);
  // Makes the value of an entry in place this state's own, so that a run may write over it.
  static Status make_own(Entry& e);

  const std::shared_ptr<Session> session_;
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
  Turns turns_;
};

}  // namespace pfrt
