// SPDX-License-Identifier: Apache-2.0
//
// A run of a session, from what is asked for to its results. Here is decided what a run is: its
// budget and the source of its memory, deadline, number of threads, profile, the state that it
// continues, who observes it, and which memory its outputs may share. Those above only translate.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/session/runs.h"
#include "core/session/session.h"
#include "core/session/state.h"

namespace pfrt {

// Is shown each extra output of a run, by its name, on the thread of the run. An error ends the run
// with it.
using Observer = std::function<Status(std::string_view output, const ValuePtr& value)>;

struct RunSettings {
  const uint32_t* cancel = nullptr;  // stops the run once it is raised; lives as long
  uint64_t deadline_ns = 0;          // on os::monotonic_ns; 0 = none
  int64_t threads = 0;               // at most; 0 = the session's number
  int64_t priority = 0;              // among runs that wait for a thread; the largest first
  uint64_t memory_limit = 0;         // bytes at a time; 0 = none of its own
  pfrt_log_level log_level = PFRT_LOG_UNSET;  // decides whether the run is logged; unset = session
  std::string tag;                            // names it in the log and the profile
  std::shared_ptr<State> state;               // may be null
  bool keeps_state = false;                   // only reads it
  Observer observer;                          // may be empty
};

// Values and places by the session's inputs and outputs.
struct RunRequest {
  std::vector<ValuePtr> inputs;  // null = not fed
  std::vector<OutputRequest> outputs;
  RunSettings settings;
};

// A run that is prepared, then carried out. It takes what the environment has when it is made. One
// thread at a time uses it.
class Run {
 public:
  // |session| outlives the run.
  Run(Session& session, RunSettings&& settings);
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  Session& session() const { return session_; }
  const RunSettings& settings() const { return settings_; }
  // The source of memory for values that are made for the run.
  const MemorySource& memory() const { return memory_; }
  // Takes values and places, and reports every fault that can be found before the run. A run with a
  // state has its turn from then on.
  Status take(std::vector<ValuePtr>&& inputs, std::vector<OutputRequest>&& outputs);
  // Runs on this thread, once. |results| gets a value for each output that is wanted: in the memory
  // that was given for it, or else with bytes that nobody shares. On failure it gets none, and the
  // memory given may have been written.
  Status carry_out(std::vector<ValuePtr>& results);

 private:
  friend Status start(std::unique_ptr<Run> run,
                      std::function<void(Status status, std::vector<ValuePtr> results)> done);
  struct Range {
    uintptr_t begin, end;
    const Device* device;  // null = host; addresses in different memories cannot be compared
    static Range of(const void* data, uint64_t bytes, const Device* device) {
      const auto begin = reinterpret_cast<uintptr_t>(data);
      return {begin, begin + static_cast<uintptr_t>(bytes), device};
    }
    bool overlaps(const Range& other) const {
      return device == other.device && begin < other.end && other.begin < end;
    }
  };
  Status check_outputs();
  Status check_output(size_t index, bool as_planned, std::span<const Range> ranges, size_t inputs,
                      Range& own);
  Status compute(std::vector<ValuePtr>& results);
  Status execute(const std::vector<OutputRequest>& requests, std::vector<ValuePtr>& results);
  Status observe(std::vector<ValuePtr>& results);
  Status place(std::vector<ValuePtr>& results);
  Status run_with_state(std::vector<ValuePtr>& results);
  Status read_state(std::vector<ValuePtr>& results);
  Status continue_state(std::vector<ValuePtr>& results);

  Session& session_;
  RunSettings settings_;
  const std::shared_ptr<const Replacements> own_;
  MemorySource memory_;
  RunControl control_;
  std::vector<ValuePtr> inputs_;
  std::vector<OutputRequest> outputs_;
  State::Turn turn_;
  std::string trace_;  // name of the run in the log; empty = it is not logged
};

// Starts a run on a thread of the environment; |done| is called once, there, after which the run is
// gone. It keeps the session. Runs begin by their priority, then in the order in which they were
// started; those of one state in the order in which they took it. An error means that nothing was
// started: BUSY where as many wait as the environment's option async_queue allows.
Status start(std::unique_ptr<Run> run,
             std::function<void(Status status, std::vector<ValuePtr> results)> done);

}  // namespace pfrt
