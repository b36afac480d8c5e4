// SPDX-License-Identifier: Apache-2.0
//
// The settings of a run besides its values: its threads, and what stops it: a cancel flag that
// others may raise at any time, and a deadline. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/base/os/cpu.h"
#include "core/base/os/profile.h"
#include "core/base/status.h"
#include "core/base/stop.h"
#include "core/exec/run/threads.h"
#include "core/memory/device.h"

namespace pfrt {

struct RunControl {
  const uint32_t* cancelled = nullptr;  // the run stops once it is raised; may be null
  uint64_t deadline_ns = 0;             // on os::monotonic_ns; 0 = none
  uint32_t width = 1;
  Profile* profile = nullptr;    // records the run; may be null
  uint32_t number = 0, tag = 0;  // of the run, in its profile
  Executor* executor = nullptr;  // null = the process's own
  bool unsplit = false;          // the batch is not to be divided
  mutable DeviceWork devices;    // the run's; used by the thread that the run is on
  // Memory of an input may have been overwritten: the run cannot be tried again. Set and read by
  // the thread that the run is on.
  mutable bool overwrote_input = false;

  // Cheap enough to be asked every few microseconds. Once it has said stop it goes on doing so: a
  // loop that was cut short must not pass for done because the flag was lowered meanwhile.
  Code stop() const {
    if (const Code code = stopped_.load(std::memory_order_relaxed); code != Code::kOK) return code;
    if (raised(cancelled)) return stop_with(Code::kCANCELLED);
    if (deadline_ns && os::recent_ns() > deadline_ns) return stop_with(Code::kDEADLINE);
    return Code::kOK;
  }
  // Ends the run with |code| at its next look; the first one counts.
  Code stop_with(Code code) const {
    Code none = Code::kOK;
    return stopped_.compare_exchange_strong(none, code, std::memory_order_relaxed) ? code : none;
  }
  // Prepares another attempt, which a lack of memory in the last one does not end.
  void attempt_again() const {
    Code memory = Code::kOUT_OF_MEMORY;
    stopped_.compare_exchange_strong(memory, Code::kOK, std::memory_order_relaxed);
  }
  Status stopped() const;  // stop() as a status
  Stop stopper() const {
    return [this] { return stopped(); };
  }
  void loop(uint32_t workers, uint64_t n, LoopBody body, void* arg) const {
    if (!executor) return parallel_for(workers, n, body, arg);
    if (!executor->loop(workers, n, body, arg)) stop_with(Code::kPROVIDER);
  }

 private:
  mutable std::atomic<Code> stopped_{Code::kOK};
};

inline Status stop_status(Code code) {
  const auto text = [code] {
    switch (code) {
      case Code::kCANCELLED:
        return "running: cancelled by the caller";
      case Code::kDEADLINE:
        return "running: the deadline has passed";
      case Code::kOUT_OF_MEMORY:
        return "running: no memory left for what a step works with";
      default:
        return "running: the environment's executor returned before it had called everything, or "
               "gave an index twice, or one or a worker out of range";
    }
  };
  return Status(code, text());
}

inline Status RunControl::stopped() const {
  const Code code = stop();
  return code == Code::kOK ? Status() : stop_status(code);
}

// Lets loops over elements look at a run after every kBytes bytes.
class BytePace {
 public:
  static constexpr uint64_t kBytes = uint64_t{1} << 16;
  explicit BytePace(const RunControl& control) : control_(control) {}
  Status after(uint64_t bytes) {
    walked_ += bytes;
    if (walked_ < kBytes) return {};
    walked_ = 0;
    return control_.stopped();
  }

 private:
  const RunControl& control_;
  uint64_t walked_ = 0;
};

}  // namespace pfrt
