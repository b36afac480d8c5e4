// SPDX-License-Identifier: Apache-2.0
//
// Chooses by measurement how a step's work is divided, among divisions that a kernel says all give
// the same bits (Kernel::alternatives). Steps run here on one thread, on made-up data, in memory of
// their own; results are kept for the process. There is one object for each program that is being
// made; an object is not thread-safe, but several may be used at once.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string_view>

#include "providers/cpu/program/step.h"

namespace pfrt::cpu {

class Tuner {
 public:
  Tuner() = default;
  Tuner(const Tuner&) = delete;
  Tuner& operator=(const Tuner&) = delete;

  // |step| has all of its buffers, except for the shared memory of its kernel; they are among
  // |buffers|. |key| holds all that the speed of the step may depend on. Gives the step the best
  // kernel, and the outcome as its detail. Without enough memory or time the step stays as it is.
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
  std::string_view choose(Trial& trial, Choice& out) const;
  static Known& known();

  Clock::time_point end_{};  // of all measurements; unset until the first
  Memory memory_, constants_;
};

}  // namespace pfrt::cpu
