// SPDX-License-Identifier: Apache-2.0
//
// Chooses by measurement how a step's work is divided, among divisions that a kernel says all give
// the same bits (Kernel::alternatives). Steps run here on one thread, on made-up data, in memory of
// their own; results are kept for the process and, where the host has a place for them, for others.
// There is one object for each program that is being made; an object is not thread-safe, but
// several may be used at once.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "providers/cpu/program/step.h"
#include "pyflame_rt/plugin.h"

namespace pfrt::cpu {

// The tuning that the host of |sink| offers; null where it has none.
const pfrt_tuning* tuning_of(const pfrt_sink& sink);

class Tuner {
 public:
  // |measure|: the tuner also measures steps of which nothing is known. |sink| is that of the call
  // that makes the program; it outlives the tuner. With a null |sink| nothing is asked of the host
  // or kept there.
  explicit Tuner(bool measure, const pfrt_sink* sink = nullptr);
  Tuner(const Tuner&) = delete;
  Tuner& operator=(const Tuner&) = delete;

  // |step| has all of its buffers, except for the shared memory of its kernel; they are among
  // |buffers|. |key| holds all that the speed of the step may depend on. Gives the step the best
  // kernel, and the outcome as its detail and tuning. Without enough memory or time the step stays
  // as it is.
  void tune(Step& step, std::span<const pfrt_buffer> buffers, std::string_view key) noexcept;

 private:
  using Clock = std::chrono::steady_clock;

  // Whole pages of memory that grow.
  class Memory {
   public:
    Memory() = default;
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory();
    // False when there is none left; contents are lost where it has to grow.
    bool reserve(uint64_t bytes);
    char* data() const { return data_; }
    uint64_t bytes() const { return bytes_; }

   private:
    char* data_ = nullptr;
    uint64_t bytes_ = 0;
  };
  struct Trial;
  struct Choice;
  struct Known;

  bool place(Trial& trial, const Step& step, std::span<const pfrt_buffer> buffers);
  std::string_view race(Trial& trial, std::span<const size_t> entrants, Clock::duration time,
                        std::span<double> best) const;
  std::string_view search(Trial& trial, const Alternatives& offered, uint64_t seed,
                          std::span<double> best) const;
  double time(Trial& trial, size_t form, double best) const;
  std::string_view choose(Trial& trial, const Alternatives& offered, uint64_t seed,
                          Choice& out) const;
  std::string_view measure(const Step& step, std::span<const pfrt_buffer> buffers,
                           const Alternatives& offered, uint64_t seed, Choice& out);
  bool recall(const Step& step, const std::string& key, Alternatives& offered, Choice& out) const;
  void remember(const std::string& key, const Alternatives& offered, const Choice& choice) const;
  uint64_t left_ns(uint64_t spent_ns);
  bool stopped() const;
  bool searches() const { return search_ == PFRT_TUNE_RANDOM || search_ == PFRT_TUNE_MODEL; }
  static Known& known();

  const bool measure_;
  const pfrt_sink* const sink_;
  const pfrt_tuning* tuning_ = nullptr;  // of |sink_|; null: there is none
  pfrt_tune_search search_ = PFRT_TUNE_RACE;
  uint64_t own_left_ns_;     // used where the host has no budget
  Clock::time_point end_{};  // of the measurements under way
  Memory memory_, constants_;
};

}  // namespace pfrt::cpu
