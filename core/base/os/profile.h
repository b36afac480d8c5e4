// SPDX-License-Identifier: Apache-2.0
//
// Records spans of time while a profile is open, each on its own thread. A thread writes into
// memory of its own, without a lock; names are kept once and referred to by number. Records beyond
// kMostBytes are dropped and counted. Thread-safe.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/os/cpu.h"
#include "core/base/os/quick_clock.h"

namespace pfrt {

// A step of a plan that records refer to.
struct ProfileStep {
  std::string nodes, ops, provider, kernel;
  uint64_t bytes = 0, flops = 0;
};

class Profile {
 public:
  static constexpr uint64_t kMostBytes = uint64_t{64} << 20;

  enum class Kind : uint8_t {
    kStage,    // of making a session; |name| is one of name()'s
    kPlan,     // making a plan in a run
    kRun,      // |name| is its tag; |value|: threads, and the code of its status << 32
    kWait,     // of an asynchronous run, until a thread took it
    kStep,     // |name| is one of add_steps'
    kShare,    // of a step's loop, on another thread than the step's
    kWorking,  // |value|: bytes that a run worked in
    kResults,  // |value|: bytes of its results
  };
  struct Record {
    uint64_t start_ns;  // on os::monotonic_ns
    std::atomic<uint64_t> kind_and_took;
    uint64_t value;
    uint32_t name;
    uint32_t run;  // from 1 on; 0 = none

    Kind kind() const {
      return static_cast<Kind>(kind_and_took.load(std::memory_order_relaxed) >> kTookBits);
    }
    uint64_t took_ns() const {
      return kind_and_took.load(std::memory_order_relaxed) & ((uint64_t{1} << kTookBits) - 1);
    }
    void set(Kind kind, uint64_t end_ns) {
      const uint64_t took = end_ns > start_ns ? end_ns - start_ns : 0;
      kind_and_took.store(static_cast<uint64_t>(kind) << kTookBits | took,
                          std::memory_order_relaxed);
    }

   private:
    static constexpr int kTookBits = 56;  // two years
  };

  Profile();
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  uint64_t start_ns() const { return start_ns_; }
  // Begins the profile at the start of earlier work on this thread; called before the first record
  // only.
  void started_before(uint64_t ns) { start_ns_ = std::min(start_ns_, ns); }
  uint32_t begin_run() { return runs_.fetch_add(1, std::memory_order_relaxed) + 1; }
  uint32_t runs() const { return runs_.load(std::memory_order_relaxed); }
  // Processor time of the process in nanoseconds, now and when the profile was opened.
  static uint64_t processor_ns();
  uint64_t processor_start_ns() const { return processor_start_ns_; }

  // Numbers for records: that of |text|, fast where this thread named it last, and that of the
  // first of |steps|. kDropped where there is no room.
  uint32_t name(std::string_view text) noexcept;
  uint32_t add_steps(std::vector<ProfileStep> steps) noexcept;
  static constexpr uint32_t kDropped = UINT32_MAX;

  void add(Kind kind, uint64_t start_ns, uint64_t end_ns, uint32_t name = 0, uint32_t run = 0,
           uint64_t value = 0) noexcept;
  // Records a thread's part of a loop. A part that follows another of the same loop extends it.
  void add_share(uint64_t start_ns, uint64_t end_ns, uint32_t name, uint32_t run) noexcept;

  // A view of the records so far. While one exists no names can be added; records can.
  class Reading;

 private:
  struct Chunk;
  struct Thread;
  Thread* thread() noexcept;
  Record* next(Thread& thread) noexcept;
  bool charge(uint64_t bytes) noexcept;

  const uint64_t id_;  // no other profile has it
  uint64_t start_ns_ = os::monotonic_ns();
  const uint64_t processor_start_ns_ = processor_ns();
  std::atomic<uint64_t> bytes_{0}, dropped_{0};
  std::atomic<uint32_t> runs_{0};
  mutable std::mutex mutex_;  // guards the members below
  std::vector<std::unique_ptr<Thread>> threads_;
  std::deque<std::string> names_;
  std::unordered_map<std::string_view, uint32_t> numbers_;
  std::deque<ProfileStep> steps_;
};

class Profile::Reading {
 public:
  explicit Reading(const Profile& profile) : profile_(profile), lock_(profile.mutex_) {}

  size_t thread_count() const { return profile_.threads_.size(); }
  // The system's number of thread |at|.
  int64_t thread_id(size_t at) const;
  // Records of thread |at|, in the order in which they ended.
  std::vector<const Record*> records(size_t at) const;
  const std::string& name(uint32_t number) const { return profile_.names_[number]; }
  const ProfileStep& step(uint32_t number) const { return profile_.steps_[number]; }
  uint64_t dropped() const { return profile_.dropped_.load(std::memory_order_relaxed); }

 private:
  const Profile& profile_;
  const std::lock_guard<std::mutex> lock_;
};

// A span that is recorded when it ends; does nothing without a profile.
class ProfileSpan {
 public:
  ProfileSpan(Profile* profile, Profile::Kind kind, uint32_t name, uint32_t run = 0)
      : profile_(profile), kind_(kind), name_(name), run_(run) {
    if (profile_) start_ns_ = os::quick_ns();
  }
  // Begins a stage of making a session.
  ProfileSpan(Profile* profile, std::string_view stage)
      : ProfileSpan(profile, Profile::Kind::kStage, profile ? profile->name(stage) : 0) {}
  ~ProfileSpan() {
    if (profile_) profile_->add(kind_, start_ns_, os::quick_ns(), name_, run_, value);
  }
  ProfileSpan(const ProfileSpan&) = delete;
  ProfileSpan& operator=(const ProfileSpan&) = delete;

  uint64_t value = 0;

 private:
  Profile* const profile_;
  const Profile::Kind kind_;
  const uint32_t name_, run_;
  uint64_t start_ns_ = 0;
};

}  // namespace pfrt
